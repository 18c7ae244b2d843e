//go:build !race

package coord

import "testing"

// SkipRaftRace does nothing in a program built without -race.
func SkipRaftRace(*testing.T) {}
