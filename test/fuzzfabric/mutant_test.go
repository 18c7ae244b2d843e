package fuzzfabric

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/report"
	"github.com/rocemu/rocemu/sim"
	"github.com/rocemu/rocemu/topology"
)

var mutants = flag.Uint64("mutants", 1500, "how many mutants of the example files")

// values are what stands where something else belongs: wrong kinds, bounds,
// overflows, foreign letters, structure.
var values = strings.Split(`0|1|-1|2|7|8|63|64|255|256|65535|65536|4294967295|4294967296|9223372036854775807|9223372036854775808|1e400|0x10|1/0|0/1|1/256|256|1e-30|
0B|1B|63B|64B|1086B|1500B|9216B|65535B|1KB|100KB|1MiB|12MiB|1TiB|1024TiB|2147483648B|2147483649B|0us|1ps|1ns|999999ps|1us|5us|1ms|200ms|2s|59s|1h|2500h|9999999h|
1kbps|1Mbps|3333333333bps|25Gbps|100Gbps|100Tbps|101Tbps|0m|1mm|1m|10km|100km|40000km|true|false|auto|none|off|idle|stopped|forever|all|every|any|strict|drop|
rnic1|rnic2|rnic99|leaf1|spine1|leaf1:1|leaf1:uplink1|rnic1:1|leaf1:99|x|ü|"\u0000"|[]|{}|[3]|[0, 1, 2, 3, 4, 5, 6, 7]|[rnic1, rnic1]|[[[]]]|{a: {b: {c: 1}}}|*a|&a 1|!!binary x|~|""|'|"|:|-|
write|read|send|fetch-add|cmp-swap|udp|tcp|incast|permutation|all-to-all|ring-allreduce|poisson|pingmesh|go-back-0|selective-repeat|swift|dcqcn|cut-through|packet|enqueue|cm|rxe|qib|cx4|in|out`, "|")

var scalar = regexp.MustCompile(`([:,\[] *)([A-Za-z0-9_./%"'-]+)`)

// mutate changes one to three places of a file.
func mutate(text string, seed uint64) string {
	g := gen{seed: seed}
	lines := strings.Split(text, "\n")
	for range 1 + g.rnd(3) {
		i := g.rnd(len(lines))
		switch g.rnd(12) {
		case 0:
			lines[i] = ""
		case 1:
			lines[i] += "\n" + lines[g.rnd(len(lines))]
		case 2:
			lines[i] = "  " + lines[i]
		case 3:
			if b := []byte(lines[i]); len(b) > 0 {
				b[g.rnd(len(b))] = byte(g.rnd(256))
				lines[i] = string(b)
			}
		default:
			at := scalar.FindAllStringSubmatchIndex(lines[i], -1)
			if len(at) == 0 {
				continue
			}
			m := at[g.rnd(len(at))]
			lines[i] = lines[i][:m[4]] + strings.TrimSpace(values[g.rnd(len(values))]) + lines[i][m[5]:]
		}
	}
	return strings.Join(lines, "\n")
}

// TestMutants loads damaged example files. What is refused must name the file
// and line; what is taken must run to a verdict.
func TestMutants(t *testing.T) {
	var files []string
	for _, dir := range []string{".", "transport", "disasters", "switch"} {
		list, err := filepath.Glob(filepath.Join("../../examples", dir, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	texts := map[string]string{}
	for _, f := range files {
		if strings.Contains(f, "pod") { // large
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[f] = string(b)
	}
	for s := *first; s < *first+*mutants; s++ {
		file := files[clock.Mix(s, 5, 5)%uint64(len(files))]
		if texts[file] == "" {
			continue
		}
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			text := mutate(texts[file], s)
			if err := mutant(filepath.Base(file), text); err != nil {
				t.Errorf("%s: %v\n%s", file, err, text)
				if *keep != "" {
					os.WriteFile(filepath.Join(*keep, fmt.Sprintf("m%d.yaml", s)), []byte(text), 0o644)
				}
			}
		})
	}
}

func mutant(name, text string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	begin := time.Now()
	plan, _, err := topology.ParseBytes(name, []byte(text))
	if took := time.Since(begin); took > *most {
		return fmt.Errorf("%v to load", took)
	}
	if err != nil {
		if !strings.Contains(err.Error(), name+":") {
			return fmt.Errorf("the error names no place: %w", err)
		}
		return nil
	}
	topology.Lint(plan)
	if sim.CheckFaults(plan) != nil {
		return nil
	}
	if len(plan.Flows) > 20000 || len(plan.Devices) > 2000 || plan.Window < 10*clock.Nanosecond {
		return nil
	}
	plan.Run.Limit = min(plan.Run.Limit, 2*clock.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), *most)
	defer cancel()
	res, err := sim.Run(ctx, plan, sim.Options{Workers: 1})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: at %v virtual, %d events", errSlow, clock.Duration(res.VirtualNS), res.Engine.Events)
	}
	if res.Verdict == report.Failed {
		return fmt.Errorf("%s: %s", res.Verdict, res.VerdictReason)
	}
	return nil
}
