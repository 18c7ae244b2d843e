package topology

import "fmt"

const (
	maxCables = 1 << 20 // of the generated part; a cable takes about 16 KiB
	maxRoutes = 1 << 30 // switches × RNICs
)

// affordable refuses fabrics whose plan alone would not fit into memory.
func (r *resolver) affordable(t *node, s shape) bool {
	switches, rnics := s.pods*(s.spines+s.leaves)+s.cores, s.pods*s.leaves*s.servers
	cables := rnics*s.ports + s.pods*s.spines*(s.leaves*s.perPair+s.cores*s.perCore)
	switch {
	case cables > maxCables:
		r.fail(t, "topology", "", fmt.Sprintf("would have %d cables, which take about %d GiB; must be at most %d", cables, cables/(64<<10), maxCables), "")
	case switches*rnics > maxRoutes:
		r.fail(t, "topology", "", fmt.Sprintf("%d switches with routes to %d RNICs each take about %d GiB; must be at most %d routes in all", switches, rnics, switches*rnics*2>>30, maxRoutes), "")
	default:
		return true
	}
	return false
}
