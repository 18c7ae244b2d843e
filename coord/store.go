package coord

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// store is raft's log and stable store on bbolt: one fsync a batch of entries,
// none where the ledger ends with the process.
type store struct {
	db *bbolt.DB
	// lost is told when the term or a vote cannot be kept: a voter that goes on
	// without could vote twice, and raft panics.
	lost func(error)
}

var (
	logBucket  = []byte("log")
	metaBucket = []byte("meta")
	// errKeyNotFound has the text raft compares with.
	errKeyNotFound = errors.New("not found")
)

func openStore(path string, sync bool) (*store, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 5 * time.Second, FreelistType: bbolt.FreelistMapType, NoSync: !sync, NoGrowSync: !sync})
	if err != nil {
		return nil, fmt.Errorf("raft log %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucketIfNotExists(logBucket); err != nil {
			return err
		}
		_, err := tx.CreateBucketIfNotExists(metaBucket)
		return err
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("raft log %s: %w", path, err)
	}
	return &store{db: db}, nil
}

func (s *store) Close() error { return s.db.Close() }

func key64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// FirstIndex implements raft.LogStore; 0 when empty.
func (s *store) FirstIndex() (n uint64, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		if k, _ := tx.Bucket(logBucket).Cursor().First(); k != nil {
			n = binary.BigEndian.Uint64(k)
		}
		return nil
	})
	return n, err
}

// LastIndex implements raft.LogStore; 0 when empty.
func (s *store) LastIndex() (n uint64, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		if k, _ := tx.Bucket(logBucket).Cursor().Last(); k != nil {
			n = binary.BigEndian.Uint64(k)
		}
		return nil
	})
	return n, err
}

// An entry is stored as term (8), type (1), time (8), extension length (4),
// extension, data.
const logFixed = 21

func encodeLog(l *raft.Log) []byte {
	b := make([]byte, 0, logFixed+len(l.Extensions)+len(l.Data))
	b = binary.LittleEndian.AppendUint64(b, l.Term)
	b = append(b, byte(l.Type))
	b = binary.LittleEndian.AppendUint64(b, uint64(l.AppendedAt.UnixNano()))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(l.Extensions)))
	b = append(b, l.Extensions...)
	return append(b, l.Data...)
}

func decodeLog(index uint64, b []byte, l *raft.Log) error {
	if len(b) < logFixed {
		return fmt.Errorf("raft log: entry %d is cut short", index)
	}
	le := binary.LittleEndian
	ext := int(le.Uint32(b[17:]))
	if ext < 0 || ext > len(b)-logFixed {
		return fmt.Errorf("raft log: entry %d is damaged", index)
	}
	*l = raft.Log{Index: index, Term: le.Uint64(b), Type: raft.LogType(b[8]), AppendedAt: time.Unix(0, int64(le.Uint64(b[9:])))}
	l.Extensions = append([]byte(nil), b[logFixed:logFixed+ext]...)
	l.Data = append([]byte(nil), b[logFixed+ext:]...)
	return nil
}

// GetLog implements raft.LogStore.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(logBucket).Get(key64(index))
		if b == nil {
			return raft.ErrLogNotFound
		}
		return decodeLog(index, b, l)
	})
}

// StoreLog implements raft.LogStore.
func (s *store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *store) StoreLogs(ls []*raft.Log) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		for _, l := range ls {
			if err := tx.Bucket(logBucket).Put(key64(l.Index), encodeLog(l)); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteRange implements raft.LogStore; both ends are inclusive.
func (s *store) DeleteRange(lo, hi uint64) error {
	return s.db.Update(func(tx *bbolt.Tx) error {
		c := tx.Bucket(logBucket).Cursor()
		for k, _ := c.Seek(key64(lo)); k != nil && binary.BigEndian.Uint64(k) <= hi; k, _ = c.Next() {
			if err := c.Delete(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Set implements raft.StableStore.
func (s *store) Set(k, v []byte) error {
	err := s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(k, v) })
	if err != nil && s.lost != nil && !errors.Is(err, bbolterrors.ErrDatabaseNotOpen) {
		s.lost(fmt.Errorf("the raft log %s cannot be written: %w", s.db.Path(), err))
	}
	return err
}

// Get implements raft.StableStore.
func (s *store) Get(k []byte) (v []byte, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket(metaBucket).Get(k)
		if b == nil {
			return errKeyNotFound
		}
		v = append([]byte{}, b...)
		return nil
	})
	return v, err
}

// SetUint64 implements raft.StableStore.
func (s *store) SetUint64(k []byte, n uint64) error { return s.Set(k, key64(n)) }

// GetUint64 implements raft.StableStore.
func (s *store) GetUint64(k []byte) (uint64, error) {
	b, err := s.Get(k)
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, fmt.Errorf("raft log: %q is damaged", k)
	}
	return binary.BigEndian.Uint64(b), nil
}
