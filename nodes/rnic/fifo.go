package rnic

// fifo is a queue of values that is popped from the front; it reuses its space.
type fifo[T any] struct {
	b    []T
	head int
}

func (q *fifo[T]) len() int    { return len(q.b) - q.head }
func (q *fifo[T]) front() *T   { return &q.b[q.head] }
func (q *fifo[T]) at(i int) *T { return &q.b[q.head+i] }
func (q *fifo[T]) clear()      { q.b, q.head = q.b[:0], 0 }

func (q *fifo[T]) push(v T) {
	if q.head > 32 && 2*q.head >= len(q.b) {
		q.b = q.b[:copy(q.b, q.b[q.head:])]
		q.head = 0
	}
	q.b = append(q.b, v)
}

func (q *fifo[T]) pop() T {
	v := q.b[q.head]
	if q.head++; q.head == len(q.b) {
		q.clear()
	}
	return v
}
