//go:build !linux

package mem

// Huge does nothing where the system has no such advice.
func Huge() {}
