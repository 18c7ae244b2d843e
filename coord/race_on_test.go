//go:build race

package coord

// RaceDetector: this program was built with -race.
const RaceDetector = true
