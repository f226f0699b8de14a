// SPDX-License-Identifier: BSD-2-Clause

// mutex PORT BACKEND: each request takes a mutex, and asks BACKEND with it.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

var lock sync.Mutex
var served int

func refresh() {
	lock.Lock()
	defer lock.Unlock()
	answer, err := http.Get("http://127.0.0.1:" + os.Args[2] + "/")
	if err == nil {
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	served++
}

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refresh()
		fmt.Fprintln(w, served)
	})
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
