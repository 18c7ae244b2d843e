package hpcc

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/topology"
	"github.com/rocemu/rocemu/topology/internal/intake"
)

// config is what of the simulator's configuration has a meaning here.
type config struct {
	dcqcn      [][2]string // keys of rnics.all.dcqcn
	congestion string
	recovery   string
	ackEvery   bool
	bufferMiB  string
	limit      string
	mtu        int
	loss       string
	ecn        map[clock.Rate][3]string // kmin, kmax, pmax
	down       []linkDown
}

type linkDown struct {
	line int
	at   clock.Duration
	a, b int
}

// config reads KEY VALUE… lines; {…} are comments.
func (im *importer) config() {
	c := &im.conf
	c.ecn = map[clock.Rate][3]string{}
	if len(im.opt.Config.Text) == 0 {
		return
	}
	name := im.opt.Config.Name
	seen := map[string]int{}
	var ignored []string
	for _, r := range intake.Split(im.opt.Config.Text, "") {
		for i, w := range r.F {
			if strings.HasPrefix(w, "{") || strings.HasPrefix(w, "#") {
				r.F = r.F[:i]
				break
			}
		}
		if len(r.F) < 2 {
			continue
		}
		if old := seen[r.F[0]]; old > 0 {
			im.Fail(name, r.Line, 1, r.F[0], "", fmt.Sprintf("given twice; first at line %d", old), "")
		}
		seen[r.F[0]] = r.Line
		if !im.setting(name, r) {
			ignored = append(ignored, r.F[0])
		}
	}
	if len(ignored) > 0 {
		im.Note(name, 1, "ignored, they have no meaning here: %s", strings.Join(ignored, ", "))
	}
	im.checkECN(name, seen)
}

// microseconds and rates of the simulator by our DCQCN names.
var (
	dcqcnTimes = map[string]string{"ALPHA_RESUME_INTERVAL": "dce_tcp_rtt", "RATE_DECREASE_INTERVAL": "rate_reduce_monitor_period", "RP_TIMER": "rpg_time_reset"}
	dcqcnRates = map[string]string{"RATE_AI": "rpg_ai_rate", "RATE_HAI": "rpg_hai_rate", "MIN_RATE": "rpg_min_rate"}
)

// setting takes one line; false = it has no meaning here.
func (im *importer) setting(name string, r intake.Row) bool {
	c, key, v := &im.conf, r.F[0], r.F[1]
	bad := func(msg string) { im.Fail(name, r.Line, len(key)+2, key, v, msg, "") }
	if im.dcqcn(name, r) {
		return true
	}
	switch key {
	case "ENABLE_QCN":
		if v == "0" {
			c.congestion = "none"
		}
	case "CC_MODE":
		if v != "1" {
			im.Contradict(name, r.Line, key, v, "only 1 (DCQCN) is modelled", "DCQCN is used instead of mode "+v)
		}
	case "L2_BACK_TO_ZERO":
		if v == "1" {
			c.recovery = "go-back-0"
			im.Note(name, r.Line, "L2_BACK_TO_ZERO 1 restarts messages, as the simulator's code does and its comment does not say")
		}
	case "L2_ACK_INTERVAL":
		c.ackEvery = v == "1"
	case "PACKET_PAYLOAD_SIZE":
		im.payload(name, r)
	case "BUFFER_SIZE":
		if n, ok := intake.Count(v, 0, 4096); ok && n > 0 {
			c.bufferMiB = strconv.Itoa(n)
		} else {
			bad("must be a size in MiB, 1..4096")
		}
	case "SIMULATOR_STOP_TIME":
		if d, err := topology.ParseDuration(v + "s"); err == nil && d > 0 {
			c.limit = d.String()
		} else if f, ok := new(big.Rat).SetString(v); ok && len(v) < 40 && f.Sign() > 0 {
			im.Note(name, r.Line, "%s %s is more than virtual time holds; the run ends when it is idle", key, v)
		} else {
			bad("must be a time in seconds")
		}
	case "ERROR_RATE_PER_LINK":
		if p, err := topology.ParseProb64(v); err != nil {
			bad(err.Error())
		} else if p > 0 {
			c.loss = v
		}
	case "KMAX_MAP", "KMIN_MAP", "PMAX_MAP":
		im.ecnMap(name, r)
	case "LINK_DOWN":
		im.linkDown(name, r)
	case "TOPOLOGY_FILE", "FLOW_FILE", "USE_DYNAMIC_PFC_THRESHOLD":
	default:
		return false
	}
	return true
}

// dcqcn takes a line that sets a DCQCN parameter.
func (im *importer) dcqcn(name string, r intake.Row) bool {
	c, key, v := &im.conf, r.F[0], r.F[1]
	bad := func(msg string) { im.Fail(name, r.Line, len(key)+2, key, v, msg, "") }
	put := func(k, val string) { c.dcqcn = append(c.dcqcn, [2]string{k, val}) }
	if k, ok := dcqcnTimes[key]; ok {
		if d, err := topology.ParseDuration(v + "us"); err != nil {
			bad("must be a time in microseconds")
		} else {
			put(k, d.String())
		}
		return true
	}
	if k, ok := dcqcnRates[key]; ok {
		if rate, err := topology.ParseRate(v); err != nil {
			bad(err.Error())
		} else {
			put(k, rate.String())
		}
		return true
	}
	switch key {
	case "EWMA_GAIN":
		g, ok := new(big.Rat).SetString(v)
		if !ok || len(v) > 32 || g.Sign() <= 0 || g.Cmp(big.NewRat(1, 1)) > 0 {
			bad("must be a gain in (0, 1]")
			return true
		}
		g.Mul(g, big.NewRat(1024, 1))
		put("dce_tcp_g", strconv.FormatInt(1024-new(big.Int).Quo(g.Num(), g.Denom()).Int64(), 10))
	case "FAST_RECOVERY_TIMES":
		if n, ok := intake.Count(v, 0, 31); ok {
			put("rpg_threshold", strconv.Itoa(n))
		} else {
			bad("must be 0..31")
		}
	case "CLAMP_TARGET_RATE":
		put("clamp_tgt_rate", strconv.FormatBool(v != "0"))
	default:
		return false
	}
	return true
}

// payload picks the IB path MTU nearest above the simulator's payload.
func (im *importer) payload(name string, r intake.Row) {
	n, ok := intake.Count(r.F[1], 0, 65535)
	if !ok || n == 0 {
		im.Fail(name, r.Line, 1, r.F[0], r.F[1], "must be 1..65535", "")
		return
	}
	im.conf.mtu = 4096 // the largest there is
	for _, m := range []int{256, 512, 1024, 2048, 4096} {
		if n <= m {
			im.conf.mtu = m
			break
		}
	}
	if im.conf.mtu != n {
		im.Note(name, r.Line, "payload %d is no IB path MTU; %d is used", n, im.conf.mtu)
	}
}

func (im *importer) linkDown(name string, r intake.Row) {
	if len(r.F) != 4 {
		im.Fail(name, r.Line, 1, r.F[0], strings.Join(r.F[1:], " "), "must be: time node node", "")
		return
	}
	d, err := topology.ParseDuration(r.F[1] + "us")
	a, ok1 := intake.Count(r.F[2], 0, maxNodes)
	b, ok2 := intake.Count(r.F[3], 0, maxNodes)
	if err != nil || !ok1 || !ok2 {
		im.Fail(name, r.Line, 1, r.F[0], strings.Join(r.F[1:], " "), "must be: microseconds node node", "")
		return
	}
	if a != b {
		im.conf.down = append(im.conf.down, linkDown{r.Line, 2*clock.Second + d, a, b})
		im.Note(name, r.Line, "LINK_DOWN counts from 2 s, as the simulator does")
	}
}

// ecnMap reads KMIN_MAP n rate value …: thresholds in KB by line rate.
func (im *importer) ecnMap(name string, r intake.Row) {
	n, ok := intake.Count(r.F[1], 0, 64)
	if !ok || len(r.F) != 2+2*n {
		im.Fail(name, r.Line, 1, r.F[0], strings.Join(r.F[1:], " "), "must be a count and that many pairs of rate and value", "")
		return
	}
	slot := map[string]int{"KMIN_MAP": 0, "KMAX_MAP": 1, "PMAX_MAP": 2}[r.F[0]]
	last := ""
	for i := 0; i < n; i++ {
		rate, err := strconv.ParseInt(r.F[2+2*i], 10, 64)
		v := r.F[3+2*i]
		if err != nil || rate <= 0 {
			im.Fail(name, r.Line, 1, r.F[0], r.F[2+2*i], "must be a rate in bits per second", "")
			return
		}
		if slot < 2 {
			if k, ok := intake.Count(v, 0, 1<<30); !ok {
				im.Fail(name, r.Line, 1, r.F[0], v, "must be a whole number of KB", "")
				return
			} else if old, _ := strconv.Atoi(last); k < old {
				im.Note(name, r.Line, "warning: %s does not rise with the rate: %s at %s after %s", r.F[0], v, clock.Rate(rate), last)
			}
		} else if _, err := topology.ParseProb64(v); err != nil {
			im.Fail(name, r.Line, 1, r.F[0], v, err.Error(), "")
			return
		}
		last = v
		e := im.conf.ecn[clock.Rate(rate)]
		e[slot] = v
		im.conf.ecn[clock.Rate(rate)] = e
	}
}

// checkECN demands a full entry for every rate in use.
func (im *importer) checkECN(name string, seen map[string]int) {
	if len(im.conf.ecn) == 0 {
		return
	}
	told := map[clock.Rate]bool{}
	for _, l := range im.links {
		e := im.conf.ecn[l.rate]
		if told[l.rate] || e[0] != "" && e[1] != "" && e[2] != "" {
			continue
		}
		told[l.rate] = true
		im.Fail(name, seen["KMIN_MAP"], 1, "KMIN_MAP", l.rate.String(), fmt.Sprintf("no ECN thresholds for this rate, which %s:%d uses; give it in KMIN_MAP, KMAX_MAP and PMAX_MAP",
			im.opt.Topology.Name, l.line), "")
	}
}
