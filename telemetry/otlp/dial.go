package otlp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Dial returns a started OTLP client for an endpoint: HOST:PORT or
// grpc://HOST:PORT (OTLP over gRPC, plain text), http://… or https://… (OTLP
// over HTTP), or file:PATH (OTLP JSON lines). It does not wait for a connection;
// the SDK's own retries are off, since [Exporter] has its own.
func Dial(endpoint string) (otlptrace.Client, error) {
	c, err := client(endpoint)
	if err != nil {
		return nil, err
	}
	return c, c.Start(context.Background())
}

func client(endpoint string) (otlptrace.Client, error) {
	switch scheme, rest := cutScheme(endpoint); scheme {
	case "file":
		return NewFile(rest)
	case "http", "https":
		return otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(withPath(endpoint)),
			otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}), otlptracehttp.WithTimeout(0)), nil // Options.Timeout bounds an export
	case "grpc":
		if _, _, err := net.SplitHostPort(rest); err != nil {
			return nil, fmt.Errorf("%w, not %q", errEndpoint, endpoint)
		}
		return otlptracegrpc.NewClient(otlptracegrpc.WithEndpoint(rest), otlptracegrpc.WithInsecure(),
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}), otlptracegrpc.WithTimeout(0)), nil
	}
	return nil, fmt.Errorf("%w, not %q", errEndpoint, endpoint)
}

// cutScheme splits an endpoint; without a scheme it is gRPC.
func cutScheme(s string) (scheme, rest string) {
	if p, ok := strings.CutPrefix(s, "file:"); ok {
		return "file", strings.TrimPrefix(p, "//")
	}
	if sch, r, ok := strings.Cut(s, "://"); ok {
		return sch, r
	}
	return "grpc", s
}

// withPath adds the standard path to a URL without one.
func withPath(u string) string {
	_, rest, _ := strings.Cut(u, "://")
	if !strings.Contains(rest, "/") {
		return u + "/v1/traces"
	}
	return u
}

// File is an OTLP client that appends each request to a file as one line of
// OTLP JSON, the format of the collector's file exporter.
type File struct {
	mu sync.Mutex
	f  *os.File
}

// NewFile creates the file.
func NewFile(path string) (*File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("telemetry.otlp: %w", err)
	}
	return &File{f: f}, nil
}

// Start does nothing.
func (*File) Start(context.Context) error { return nil }

// Stop closes the file.
func (f *File) Stop(context.Context) error { return f.f.Close() }

// UploadTraces writes one line.
func (f *File) UploadTraces(_ context.Context, rs []*tracepb.ResourceSpans) error {
	// What comes is packed; JSON needs the fields.
	d := new(tracepb.TracesData)
	if err := proto.Unmarshal(marshal(&tracepb.TracesData{ResourceSpans: rs}), d); err != nil {
		return err
	}
	b, err := jsonLine(d)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err = f.f.Write(append(b, '\n'))
	return err
}

// jsonLine encodes a message as OTLP JSON: protobuf JSON with ids in hex and
// enumerations as numbers.
func jsonLine(d *tracepb.TracesData) ([]byte, error) {
	b, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(d)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	hexIDs(v)
	return json.Marshal(v)
}

// hexIDs rewrites trace and span ids from base64 to hex, in place.
func hexIDs(v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			hexIDs(x)
		}
	case map[string]any:
		for k, x := range v {
			s, ok := x.(string)
			if !ok || k != "traceId" && k != "spanId" && k != "parentSpanId" {
				hexIDs(x)
				continue
			}
			if raw, err := base64.StdEncoding.DecodeString(s); err == nil {
				v[k] = hex.EncodeToString(raw)
			}
		}
	}
}
