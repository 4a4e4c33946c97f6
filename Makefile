# shardd: the commands that people use. `make help` lists them.

GO ?= go
BIN ?= $(CURDIR)/bin
GOLANGCI_VERSION ?= v2.15.0

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: demo
demo: ## the main job on embedded etcd: publish, follow, route, add a node, compare algorithms
	$(GO) run ./cmd/shardd demo

.PHONY: build
build: ## build shardd and migrate into ./bin
	$(GO) build -trimpath -o $(BIN)/ ./cmd/...

.PHONY: test
test: services ## install the services the tests use where possible, then run every test
	$(GO) test ./...

.PHONY: services
services: ## install memcached, redis-server, etcd-server and python3 (Debian; needs root or sudo)
	@sh scripts/install-services

.PHONY: race
race: ## every test under the race detector
	$(GO) test -race ./...

.PHONY: bench
bench: ## run every benchmark once, so that they keep working
	$(GO) test -run '^$$' -bench . -benchtime 1x ./...

.PHONY: sim
sim: ## play every experiment of the simulator, shortened, against its expected values
	$(GO) run ./bench sim all --quick

.PHONY: peers
peers: ## the separate module that compares us with other libraries: vet, and a quick run
	$(GO) -C bench/peers vet ./...
	$(GO) -C bench/peers run . -quick

.PHONY: lint
lint: $(BIN)/golangci-lint-$(GOLANGCI_VERSION) ## gofmt, go vet, golangci-lint
	@out=$$(gofmt -l .); [ -z "$$out" ] || { echo "not gofmt-ed:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(BIN)/golangci-lint-$(GOLANGCI_VERSION) run --allow-parallel-runners ./...

$(BIN)/golangci-lint-$(GOLANGCI_VERSION):
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(BIN)/golangci-lint $@

.PHONY: cross
cross: ## build and vet for 386 and arm64; build SDK and programs for darwin and windows
	GOOS=linux GOARCH=386 $(GO) build ./... && GOOS=linux GOARCH=386 $(GO) vet ./...
	GOOS=linux GOARCH=arm64 $(GO) build ./... && GOOS=linux GOARCH=arm64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) build ./sdk/... ./cmd/...
	GOOS=windows GOARCH=amd64 $(GO) build ./sdk/... ./cmd/...

.PHONY: ci
ci: ## everything that has to hold before a change lands
	bash .ci/run
