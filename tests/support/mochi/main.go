// SPDX-License-Identifier: Apache-2.0

// A mochi-mqtt with its default settings. It is called as mosquitto is in the tests: -c FILE. It reads the port in that file,
// and nothing else.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
)

func main() {
	configuration, err := os.ReadFile(os.Args[2])
	check(err)
	port := regexp.MustCompile(`(?m)^listener (\d+)`).FindSubmatch(configuration)[1]

	server := mqtt.New(nil)
	check(server.AddHook(new(auth.AllowHook), nil))
	check(server.AddListener(listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:" + string(port)})))
	check(server.Serve())
	fmt.Println("mosquitto version 0.0.0 running (mochi-mqtt)")

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
	check(server.Close())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
