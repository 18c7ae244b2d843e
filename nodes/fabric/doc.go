// Package fabric is the switch: what leaf, spine and core share. Its parts are
// value machines without time sources or frames in bytes: [MMU] (shared
// buffer, XOFF and XON), [WRED] (ECN marks and early drops), [Scheduler]
// (strict and DWRR), queues, [Watchdog], ECMP. [Switch] joins them to an actor
// built from a resolved plan. It knows nothing of files, processes, telemetry
// formats or RNICs. Start at [Switch.Advance].
package fabric
