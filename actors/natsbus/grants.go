package natsbus

// What the holder of a key may publish and hear, in this package's servers and in
// the configuration that keys come with. A member answers the flow control of
// its object reads ($JS.FC), or a large one stands still; a person asks the
// services, gets answers and listens to taps, no more.
var (
	MemberPublish   = []string{"emu.>", "$SRV.>", "_INBOX.>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$O.>"}
	MemberSubscribe = []string{"emu.>", "$SRV.>", "_INBOX.>", "$JS.API.>", "$O.>"}
	PersonPublish   = []string{"emu.ctl.>", "$SRV.>"}
	PersonSubscribe = []string{"_INBOX.>", "emu.tap.>"}
)
