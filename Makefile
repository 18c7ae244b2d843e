# Verbs for people and CI; each is one line.
SEED ?= 1
BIN  ?= bin

SOAK ?= 1h

SEEDS ?= 5000

.PHONY: build test race fuzz chaos soak sim mutants lint bench compose dist images

build:   ; go build -trimpath -o $(BIN)/ ./cmd/...
test:    ; go test ./...
race:    ; go test -race ./...
fuzz:    ; .ci/run fuzz
chaos:   ; CHAOS=1 go test ./test/chaos -count=1 -v -timeout 30m -seed=$(SEED)
soak:    ; SOAK=$(SOAK) go test ./test/chaos -count=1 -v -timeout 0 -run '^TestSoak$$' -seed=$(SEED)
sim:     ; SIM_SEEDS=$(SEEDS) SIM_FIRST=$(SEED) SIM_REPEATS=200 go test ./coord -count=1 -v -timeout 0 -run '^TestSimulat(edCluster|ionRepeats)$$'
mutants: ; SIM_MUTANTS=1 go test ./coord -count=1 -v -timeout 0 -run '^TestSimulationFindsMutants$$'
lint:    ; .ci/run lint
bench:   ; go test -run '^$$' -bench . -benchmem ./...
compose: images ; ROCEMU_TARGET=prebuilt docker compose -f deploy/compose/compose.yaml up --detach
dist:    ; CGO_ENABLED=0 go build -trimpath -pgo=bench/default.pgo -ldflags="-s -w" -o dist/bin/ ./cmd/... && for d in keys data nats nats2 nats3; do mkdir -p dist/root/$$d && touch dist/root/$$d/.keep; done
images: dist ; docker build -q -f deploy/compose/Dockerfile --target prebuilt -t rocemu/emud:dev .
