// Package qp is the RC transport of one queue pair as pure machines: a
// [Requester] (send side), a [Responder] (receive side) and the [QP] that joins
// them. No goroutine, lock, clock or I/O: now is a parameter, what happened is
// an [Effects] value, timers are deadlines. A message is a range of PSNs, so
// 1 GB outstanding costs what 1 MB costs; nothing is allocated once the queues
// have grown to what a workload needs.
//
// # How an actor drives it
//
// Each RNIC holds one [Memory], one [Counters] and per QP one [QP], made with
// QP.Init. [Config] is shared by QPs with equal settings. Both ends derive the
// content keys from (RNIC number, QPN), so nothing else has to be agreed.
//
//   - Work: q.Req.Post(now, &wr, &fx). False = queue full or QP not in RTS.
//   - Sending: q.Req.Ready(now) ≤ now means a packet may leave (a later value:
//     when, an RNR wait; Never: an event must come first). The actor adds the
//     rate limit (package cc), port, pause. q.Req.NextPacket(now, &f) is the
//     irrevocable dequeue and arms the ACK timer. A frame with f.Iter > 1 is a
//     retransmission; its cause is q.Req.Cause().
//   - Responses owed: q.Resp.ResponseReady() (0 = now, an instant = a NAK that
//     takes its generation latency, Never = none), q.Resp.NextResponse(now, &f).
//     READ responses are data (KindData) and come out one packet a call; ACK,
//     NAK, RNR and ATOMIC_ACK are KindAck.
//   - Arrivals: q.HandleFrame(now, &f, viaAlternatePath, &fx). The actor drops
//     bad FCS, ICRC and headers before, counts CE marks and CNPs itself
//     (QP.CNPFrame builds one), and asks Ready and ResponseReady again after.
//   - Timers: q.Req.Deadline(); at that instant q.Req.OnTimeout(now, &fx).
//     The responder has no timer: receives that were reposted and delayed NAKs
//     are settled by comparing instants.
//   - After every call: read fx (completions in posting order, exactly one a
//     request; receives; notes, which become records), then fx.Reset().
//
// fx.CNP asks for a CNP with the NAK just queued; fx.Loss and fx.RTT feed
// congestion control; fx.Acked counts PSNs.
//
// # Sequence numbers, iterations, content
//
// Inside, PSNs are 64-bit counts from the initial PSN. Frame.Index is the
// psn_index of a packet's first transmission (a READ request counts one, its
// responses are the responder's stream; ACK, NAK and RNR have ordinals of their
// own), Frame.Iter how often it was sent, kept as a short list of stretches that
// were sent again. Frame.C of a payload is a function of (QP, message, offset);
// the other end computes it anew, so wrong bytes, wrong places, double
// execution show as [NoteIntegrity]. Frame.A of an ACK is the arrival of the
// answered packet's last bit.
//
// Start at qp.go, then send.go and response.go for the requester, execute.go
// and replay.go for the responder. The rules are transport §2 and §3 and the
// page "Timers and retries" of the model rules.
package qp
