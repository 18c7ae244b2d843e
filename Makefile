# Verbs for people and CI; each is one line.
SEED ?= 1
BIN  ?= bin

.PHONY: build test race fuzz chaos lint bench compose

build:   ; go build -trimpath -o $(BIN)/ ./cmd/...
test:    ; go test ./...
race:    ; go test -race ./...
fuzz:    ; .ci/run fuzz
chaos:   ; go test ./test/chaos/... -count=1 -seed=$(SEED)
lint:    ; .ci/run lint
bench:   ; go test -run '^$$' -bench . -benchmem ./...
compose: ; docker compose -f deploy/compose.yaml up --build --abort-on-container-exit
