//go:build !race

package coord

// raceDetector: this program was built with -race.
const raceDetector = false
