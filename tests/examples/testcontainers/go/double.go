// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"os"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// StartDouble starts a double in a container, for a test and its subtests, and returns the URL of its broker. Use it with
// ../../go/statestore.go.
func StartDouble(t *testing.T) string {
	t.Helper()
	image := os.Getenv("STATESTORE_IMAGE")
	if image == "" {
		image = "statestored-double"
	}
	double, err := testcontainers.Run(context.Background(), image,
		testcontainers.WithExposedPorts("1883/tcp"),
		testcontainers.WithWaitStrategy(wait.ForLog("mqtt://")))
	testcontainers.CleanupContainer(t, double)
	if err != nil {
		t.Fatal(err)
	}
	url, err := double.PortEndpoint(context.Background(), "1883/tcp", "mqtt")
	if err != nil {
		t.Fatal(err)
	}
	return url
}
