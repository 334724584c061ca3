// A worker of benches/compare/measure.py, which describes its input. Arguments: hosts, ttl in milliseconds.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"golang.org/x/sys/unix"
)

var input = bufio.NewScanner(os.Stdin)

func main() {
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(os.Args[1], ",")})
	check(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(number(os.Args[2])/1000)))
	check(err)
	locks := map[string]*concurrency.Mutex{}
	for input.Scan() {
		words := strings.Fields(input.Text())
		mutex := locks[words[1]]
		if mutex == nil {
			mutex = concurrency.NewMutex(session, "/concurrency/"+words[1])
			locks[words[1]] = mutex
		}
		switch words[0] {
		case "free":
			answer(free(mutex, number(words[2])))
		case "contend":
			answer(contend(mutex, number(words[2]), number(words[3])))
		case "take":
			take(mutex)
		default:
			panic(words[0])
		}
	}
	check(client.Close())
}

func number(word string) int64 {
	value, err := strconv.ParseInt(word, 10, 64)
	check(err)
	return value
}

// An empty line ends the answer.
func answer(lines string) {
	fmt.Print(lines + "\n")
}

func free(mutex *concurrency.Mutex, count int64) string {
	var lines strings.Builder
	for ; count > 0; count-- {
		asked := now()
		check(mutex.Lock(context.Background()))
		had := now()
		check(mutex.Unlock(context.Background()))
		fmt.Fprintln(&lines, had-asked, now()-had)
	}
	return lines.String()
}

func contend(mutex *concurrency.Mutex, until, hold int64) string {
	var lines strings.Builder
	for now() < until {
		asked := now()
		check(mutex.Lock(context.Background()))
		had := now()
		time.Sleep(time.Duration(hold))
		released := now()
		check(mutex.Unlock(context.Background()))
		fmt.Fprintln(&lines, asked, had, released)
	}
	return lines.String()
}

// Answers when it has the lock, and releases it at the next line.
func take(mutex *concurrency.Mutex) {
	check(mutex.Lock(context.Background()))
	answer(fmt.Sprintln(now()))
	input.Scan()
	check(mutex.Unlock(context.Background()))
	answer("")
}

// Nanoseconds of the clock that all processes share.
func now() int64 {
	var time unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_MONOTONIC, &time))
	return time.Nano()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
