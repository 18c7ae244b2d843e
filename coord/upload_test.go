package coord

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestUploads(t *testing.T) {
	var u uploads
	now := time.Unix(0, 0)
	b := bytes.Repeat([]byte("abc"), UploadPiece/2)
	sum := SumOf(b)
	piece := func(off int) *Upload {
		return &Upload{Sum: sum, Total: len(b), Offset: off, Piece: b[off:min(len(b), off+UploadPiece)]}
	}
	if _, have, err := u.add(piece(UploadPiece), now); have != 0 || err != nil {
		t.Fatalf("a piece without its beginning: %d %v", have, err)
	}
	for range 2 { // a repeated piece changes nothing
		if _, have, err := u.add(piece(0), now); have != UploadPiece || err != nil {
			t.Fatalf("first piece: %d %v", have, err)
		}
	}
	whole, _, err := u.add(piece(UploadPiece), now)
	if err != nil || !bytes.Equal(whole, b) {
		t.Fatalf("whole: %d bytes, %v", len(whole), err)
	}
	for i := range maxUploads {
		x := piece(0)
		x.Sum = SumOf([]byte{byte(i)})
		if _, _, err := u.add(x, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := u.add(piece(0), now); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("one too many: %v", err)
	}
	if _, _, err := u.add(piece(0), now.Add(2*uploadKeep)); err != nil {
		t.Errorf("after the others were given up: %v", err)
	}
	bad := piece(0)
	bad.Sum = SumOf([]byte("x"))
	bad.Total, bad.Piece = 3, []byte("abc")
	if _, _, err := u.add(bad, now.Add(2*uploadKeep)); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("damaged: %v", err)
	}
	for _, x := range []*Upload{{}, {Sum: sum, Total: MaxEntry + 1, Piece: []byte{1}}, {Sum: sum, Total: 1, Offset: -1, Piece: []byte{1}}} {
		if _, _, err := u.add(x, now); err == nil {
			t.Errorf("%+v was accepted", x)
		}
	}
}
