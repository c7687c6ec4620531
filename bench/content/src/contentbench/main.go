// contentbench puts load on a content store through containerd's own client, and can serve containerd's own
// store behind the same API, as the yardstick.
//
//	contentbench serve ROOT SOCKET            containerd's local store; prints "listening on SOCKET"
//	contentbench load SOCKET MIB    one line of JSON: MB/s for each measurement
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	api "github.com/containerd/containerd/api/services/content/v1"
	"github.com/containerd/containerd/content"
	"github.com/containerd/containerd/content/local"
	"github.com/containerd/containerd/content/proxy"
	"github.com/containerd/containerd/defaults"
	"github.com/containerd/containerd/namespaces"
	"github.com/containerd/containerd/pkg/dialer"
	"github.com/containerd/containerd/services/content/contentserver"
	digest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"google.golang.org/grpc"
)

const mib = 1 << 20

func serve(root, socket string) error {
	store, err := local.NewStore(root)
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(defaults.DefaultMaxRecvMsgSize),
		grpc.MaxSendMsgSize(defaults.DefaultMaxSendMsgSize))
	api.RegisterContentServer(server, contentserver.New(store))
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", socket)
	return server.Serve(listener)
}

func connect(socket string) (content.Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := grpc.DialContext(ctx, dialer.DialAddress(socket), grpc.WithInsecure(), grpc.WithBlock(),
		grpc.WithContextDialer(dialer.ContextDialer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(defaults.DefaultMaxRecvMsgSize),
			grpc.MaxCallSendMsgSize(defaults.DefaultMaxSendMsgSize)))
	if err != nil {
		return nil, err
	}
	return proxy.NewContentStore(api.NewContentClient(conn)), nil
}

// write sends data as containerd does: a Status before each write of 1 MiB, then a commit.
func write(ctx context.Context, store content.Store, data []byte, want digest.Digest) error {
	w, err := store.Writer(ctx, content.WithRef("bench/1/layer-"+want.String()),
		content.WithDescriptor(ocispec.Descriptor{Size: int64(len(data))}))
	if err != nil {
		return err
	}
	defer w.Close()
	for at := 0; at < len(data); at += mib {
		if _, err := w.Status(); err != nil {
			return err
		}
		end := at + mib
		if end > len(data) {
			end = len(data)
		}
		if _, err := w.Write(data[at:end]); err != nil {
			return err
		}
	}
	return w.Commit(ctx, int64(len(data)), want)
}

// read reads the whole blob, `chunk` bytes a call, and compares.
func read(ctx context.Context, store content.Store, data []byte, want digest.Digest, chunk int) error {
	r, err := store.ReaderAt(ctx, ocispec.Descriptor{Digest: want})
	if err != nil {
		return err
	}
	defer r.Close()
	buffer := make([]byte, chunk)
	for at := 0; at < len(data); at += chunk {
		n, err := r.ReadAt(buffer, int64(at))
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 || string(buffer[:n]) != string(data[at:at+n]) {
			return fmt.Errorf("wrong bytes at %d", at)
		}
	}
	return nil
}

func load(socket string, size int) error {
	ctx := namespaces.WithNamespace(context.Background(), "bench")
	store, err := connect(socket)
	if err != nil {
		return err
	}
	data := make([]byte, size)
	if _, err := rand.Read(data); err != nil {
		return err
	}
	want := digest.FromBytes(data)
	result := map[string]float64{}
	for _, m := range []struct {
		name  string
		bytes int
		run   func() error
	}{
		{"write", size, func() error { return write(ctx, store, data, want) }},
		{"read 32 KiB", size / 4, func() error { return read(ctx, store, data[:size/4], want, 32<<10) }},
		{"read 1 MiB", size, func() error { return read(ctx, store, data, want, mib) }},
	} {
		begin := time.Now()
		if err := m.run(); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		result[m.name] = float64(m.bytes) / 1e6 / time.Since(begin).Seconds()
	}
	if err := store.Delete(ctx, want); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func run() error {
	args := os.Args[1:]
	if len(args) == 3 && args[0] == "serve" {
		return serve(args[1], args[2])
	}
	if len(args) == 3 && args[0] == "load" {
		size, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return load(args[1], size*mib)
	}
	return errors.New("usage: contentbench serve ROOT SOCKET | load SOCKET MIB")
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "contentbench:", err)
		os.Exit(1)
	}
}
