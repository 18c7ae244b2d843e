#include "textflag.h"

// func prefetch(p unsafe.Pointer, n int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
loop:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	SUBQ $1, CX
	JG loop
	RET

// func own(p unsafe.Pointer, n int)
TEXT ·own(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
loop:
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX), which the assembler lacks; older processors do nothing
	ADDQ $64, AX
	SUBQ $1, CX
	JG loop
	RET
