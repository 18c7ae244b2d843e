package qp

import "github.com/rocemu/rocemu/nodes/wire"

// Migration is the state of automatic path migration (transport §2.10).
type Migration uint8

// Migration states; without an alternate path a QP stays MIGRATED.
const (
	Migrated Migration = iota
	Rearm
	Armed
)

// Migration returns the migration state; OnAlternate whether the alternate
// path is the current one.
func (c *Context) Migration() Migration { return c.mig }
func (c *Context) OnAlternate() bool    { return c.alt }

// stampM sets the M bit that frames of this end carry: 1 iff MIGRATED, on
// NICs that send it at all.
func (c *Context) stampM() {
	c.bth = 0
	if c.mig == Migrated && c.cfg.MBit {
		c.bth = wire.FlagM
	}
}

// Reload loads the path that is not current as alternate and moves to REARM.
func (c *Context) Reload() {
	c.altKnown, c.mig = true, Rearm
	c.stampM()
}

// checkPath applies a frame's M bit to the migration state; false = drop.
// viaAlt tells that it came over the alternate path, as the fabric numbers the
// two; a migrating frame must come over the one that is not in use.
func (c *Context) checkPath(f *wire.Frame, viaAlt bool, fx *Effects) bool {
	m := f.Has(wire.FlagM)
	switch c.mig {
	case Rearm:
		if !m {
			c.mig = Armed
			fx.note(Note{Kind: NoteArmed})
			c.stampM()
		}
	case Armed:
		if !m {
			return true
		}
		if viaAlt == c.alt {
			return false
		}
		c.migrate(fx)
	}
	return true
}

// migrate makes the alternate path current.
func (c *Context) migrate(fx *Effects) {
	c.alt, c.mig, c.altKnown = !c.alt, Migrated, false
	c.stampM()
	x := int64(0)
	if c.alt {
		x = 1
	}
	fx.note(Note{Kind: NoteMigrate, X: x})
}

// tryMigrate is the requester's last resort: true if the QP was ARMED and now
// goes on over the other path.
func (c *Context) tryMigrate(fx *Effects) bool {
	if c.mig != Armed || !c.altKnown {
		return false
	}
	c.migrate(fx)
	return true
}
