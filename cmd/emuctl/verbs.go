package main

import "github.com/spf13/cobra"

// verbs lists the commands, in the order of interface documentation. A verb
// added here is a file of its own.
func (a *app) verbs() []*cobra.Command {
	return append([]*cobra.Command{
		a.run(), a.validate(), a.topology(), a.headroom(), a.alpha(), a.timers(),
		a.path(), a.perf(), a.sweep(), a.tune(), a.plan(), a.qp(), a.claims(),
		a.report(), a.explain(), a.trace(), a.counters(), a.show(), a.pcap(), a.tap(), a.top(), a.observe(),
		a.submit(), a.status(), a.nodes(), a.result(), a.fault(), a.setLive(), a.revert(), a.snapshot(), a.cluster(), a.contexts(),
		a.schema(), a.exports(), a.compose(), a.diff(), a.initFile(), a.version(),
	}, a.control()...)
}

// importers lists the children of `emuctl import`.
func (a *app) importers() []*cobra.Command {
	return []*cobra.Command{a.importHPCC(), a.importConWeave(), a.importHTSim(), a.importSonic(), a.importClab()}
}
