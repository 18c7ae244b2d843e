// Package compose holds tests that run fabrics in Docker containers; they need
// an engine and the build tag compose.
package compose
