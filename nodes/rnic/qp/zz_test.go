package qp

import (
	"fmt"
	"testing"

	"github.com/rocemu/rocemu/nodes/wire"
)

func TestZZ(t *testing.T) {
	cfg := Generic()
	var a, b QP
	var mem Memory
	k := mem.Register(0, 1<<40, RemoteWrite|RemoteRead, 0, true)
	a.Init(Params{Cfg: &cfg, Memory: &mem, QPN: 17, PeerQPN: 17, Src: 1, Dst: 2})
	b.Init(Params{Cfg: &cfg, Memory: &mem, QPN: 17, PeerQPN: 17, Src: 2, Dst: 1})
	var fx Effects
	a.Req.Post(0, &WR{Verb: Write, Len: 3001, RKey: k}, &fx)
	var f wire.Frame
	for a.Req.NextPacket(1, &f) {
		fmt.Println(f.Op(), f.Len, uint32(f.B), f.Pad(), f.PayloadLen())
		b.HandleFrame(1, &f, false, &fx)
	}
	for b.Resp.NextResponse(2, &f) {
		fmt.Println(f.Op(), f.Syndrome())
	}
}
