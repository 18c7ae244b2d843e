//go:build !linux

package mem

func advise([]byte) {}
