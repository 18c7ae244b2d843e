// Package lint holds no code: its tests enforce the rules of the repository
// that a compiler does not. They are the import table of ARCHITECTURE.md, the
// calls that would break determinism below the engine, the length of functions
// and files, and a comment on every package.
package lint
