package coord

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// answers is a store that gives one error after another, then the blob.
type answers []error

func (a *answers) Put(context.Context, []byte) (string, error) { return "", nil }

func (a *answers) Get(context.Context, string) ([]byte, error) {
	if len(*a) == 0 {
		return []byte("blob"), nil
	}
	err := (*a)[0]
	*a = (*a)[1:]
	return nil, err
}

// A store that is away is waited for: only one that says that the blob is not
// there makes everybody go back to the checkpoint before.
func TestFetchBlob(t *testing.T) {
	away := fmt.Errorf("object store: %w: outbound buffer limit exceeded", errAway)
	for name, c := range map[string]struct {
		say  answers
		want bool
		left int
	}{
		"there":      {answers{}, true, 0},
		"away twice": {answers{away, errors.Join(errors.New("not on disk"), away)}, true, 0},
		"lost":       {answers{errors.New("not on disk"), away}, false, 1},
		"lost later": {answers{away, errors.New("object not found"), away}, false, 1},
	} {
		b, err := fetchBlob(t.Context(), &c.say, "", time.Minute)
		if (err == nil) != c.want || len(c.say) != c.left || c.want && string(b) != "blob" {
			t.Errorf("%s: %q, %v, %d answers left", name, b, err, len(c.say))
		}
	}
	long := make(answers, 1000)
	for i := range long {
		long[i] = away
	}
	if _, err := fetchBlob(t.Context(), &long, "", 300*time.Millisecond); !errors.Is(err, errAway) {
		t.Errorf("away for ever: %v", err)
	}
}
