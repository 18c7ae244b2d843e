package coord

import (
	"debug/elf"
	"os"
)

// ownBuild names the code of this process: replay needs the same.
func ownBuild() (string, error) {
	p, err := os.Executable()
	if err != nil {
		return "", err
	}
	return buildOf(p)
}

// buildOf names the code of an executable, by the identity that the Go linker
// gave it, a hash of all it was made of and of what it is. Where that was left
// out, the whole file is hashed, which takes a quarter of a second.
func buildOf(path string) (string, error) {
	if id := linkedID(path); len(id) > 0 {
		return SumOf(id)[:16], nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return SumOf(b)[:16], nil
}

// linkedID reads the build id's note, nil when there is none.
func linkedID(path string) []byte {
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	s := f.Section(".note.go.buildid")
	if s == nil || s.Size > 4096 {
		return nil
	}
	const head = 16 // of a note: three sizes and the owner's name
	if b, err := s.Data(); err == nil && len(b) > head {
		return b[head:]
	}
	return nil
}
