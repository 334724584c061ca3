// Takes and releases a free lock as often as each line of the input says. Prints the nanoseconds of both, a line each.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

func main() {
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(os.Args[1], ",")})
	check(err)
	session, err := concurrency.NewSession(client)
	check(err)
	mutex := concurrency.NewMutex(session, "/concurrency/bench")
	var count int
	for {
		if _, err := fmt.Scanln(&count); err != nil {
			break
		}
		var times strings.Builder
		for ; count > 0; count-- {
			start := time.Now()
			check(mutex.Lock(context.Background()))
			locked := time.Now()
			check(mutex.Unlock(context.Background()))
			fmt.Fprintln(&times, locked.Sub(start).Nanoseconds(), time.Since(locked).Nanoseconds())
		}
		fmt.Print(times.String())
	}
	check(client.Close())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
