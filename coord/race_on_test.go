//go:build race

package coord

import "testing"

// SkipRaftRace skips a test in which a coordinator gets another Raft port, in a
// program built with -race: hashicorp/raft 1.8.0 then writes a peer under its lock
// (startStopReplication) while updateLastAppended reads the peer's name, which stays
// the same, without it. The detector fails whichever test that happens in.
func SkipRaftRace(t *testing.T) {
	t.Helper()
	t.Skip("hashicorp/raft 1.8.0 reads a peer without its lock where the peer's address changes")
}
