package rnic

import (
	"github.com/rocemu/rocemu/actors/snap"
	"github.com/rocemu/rocemu/clock"
	"github.com/rocemu/rocemu/nodes/rnic/tcp"
)

func (t *stream) snapshot(w *snap.Writer) {
	t.s.Snapshot(w)
	w.Len(t.writes.len())
	for i := range t.writes.len() {
		w.Time(*t.writes.at(i))
	}
	w.Time(t.core)
	w.Time(t.ready)
	w.I64(int64(t.cpu))
	w.Time(t.wakeAt)
	w.Bool(t.inRing)
	w.Bool(t.dead)
}

func (t *stream) restore(r *snap.Reader) {
	t.s.Restore(r)
	t.writes.clear()
	for range r.Len() {
		t.writes.push(r.Time())
	}
	t.core, t.ready = r.Time(), r.Time()
	t.cpu = clock.Duration(r.I64())
	t.wakeAt = r.Time()
	t.inRing, t.dead = r.Bool(), r.Bool()
}

func (k *sink) snapshot(w *snap.Writer) {
	k.r.Snapshot(w)
	w.Len(k.wait.len())
	for i := range k.wait.len() {
		a := k.wait.at(i)
		w.Time(a.done)
		w.I64(a.seq)
		w.I64(a.n)
		w.Time(a.sent)
		w.Bool(a.ce)
	}
	w.Len(k.acks.len())
	for i := range k.acks.len() {
		a := k.acks.at(i)
		w.I64(a.Ack)
		w.I64(a.From)
		w.I64(a.Upto)
		w.Time(a.Echo)
		w.Bool(a.ECE)
	}
	w.Time(k.core)
	w.I64(int64(k.cpu))
	w.Time(k.last)
	w.Time(k.wakeAt)
	w.Bool(k.inRing)
	w.Bool(k.gone)
}

func (k *sink) restore(r *snap.Reader) {
	k.r.Restore(r)
	k.wait.clear()
	for range r.Len() {
		k.wait.push(arrived{done: r.Time(), seq: r.I64(), n: r.I64(), sent: r.Time(), ce: r.Bool()})
	}
	k.acks.clear()
	for range r.Len() {
		k.acks.push(tcp.Ack{Ack: r.I64(), From: r.I64(), Upto: r.I64(), Echo: r.Time(), ECE: r.Bool()})
	}
	k.core = r.Time()
	k.cpu = clock.Duration(r.I64())
	k.last, k.wakeAt = r.Time(), r.Time()
	k.inRing, k.gone = r.Bool(), r.Bool()
}
