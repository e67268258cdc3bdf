// A service whose clients may each send 10 messages a minute and 30 a day.
//
//	go run server.go
//
// GET / costs one unit, and POST /messages?count=3 costs three.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

type policy struct {
	name           string
	units, seconds int
}

// Both windows go into one call, so a request is charged to both or to none.
var policies = []policy{{"minute", 10, 60}, {"day", 30, 86_400}}

// redigo resends nothing by itself, as must be: a command whose reply was lost may have been
// charged. In go-redis the switch is MaxRetries: -1.
func newPool(url string, timeout time.Duration) *redis.Pool {
	return &redis.Pool{
		MaxIdle: 16,
		Dial: func() (redis.Conn, error) {
			// A limiter that hangs must not hang the service.
			return redis.DialURL(url, redis.DialConnectTimeout(timeout),
				redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout))
		},
		// Finds what the server has closed in the meantime, before anything is charged on it.
		TestOnBorrow: func(connection redis.Conn, used time.Time) error {
			if time.Since(used) < time.Second {
				return nil
			}
			_, err := connection.Do("PING")
			return err
		},
	}
}

// The reply of RL.SLIDE, in its order. Times are in milliseconds.
type decision struct {
	Allowed, Limit, Remaining, RetryAfter, ResetAfter, Window int
}

func decide(pool *redis.Pool, client, cost string) (decision, error) {
	arguments := redis.Args{"rl:" + client}
	for _, p := range policies {
		arguments = arguments.Add(fmt.Sprintf("%ds", p.seconds), p.units)
	}
	connection := pool.Get()
	defer connection.Close()
	var d decision
	reply, err := redis.Values(connection.Do("RL.SLIDE", arguments.Add("COST", cost)...))
	if err == nil {
		_, err = redis.Scan(reply, &d.Allowed, &d.Limit, &d.Remaining, &d.RetryAfter,
			&d.ResetAfter, &d.Window)
	}
	return d, err
}

var isCost = regexp.MustCompile(`^[1-9][0-9]{0,8}$`).MatchString

func limitRate(pool *redis.Pool, failClosed bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Checked here, because an argument that Redis refuses would count as a limiter that
		// failed, and with FAIL=open let the request pass.
		cost := "1"
		if query := r.URL.Query(); query.Has("count") {
			cost = query.Get("count")
		}
		if !isCost(cost) {
			problem(w, 400, "count must be a number from 1", nil)
			return
		}

		d, err := decide(pool, client(r), cost)
		if err != nil {
			log.Print("the limiter failed: ", err)
			if failClosed {
				problem(w, 503, "The rate limiter cannot be reached", nil)
			} else {
				next.ServeHTTP(w, r)
			}
			return
		}

		name := policyOf(d.Window)
		limit := fmt.Sprintf(`"%s";r=%d`, name, d.Remaining)
		w.Header().Set("RateLimit-Policy", policyHeader())
		switch {
		case d.Allowed == 1:
			w.Header().Set("RateLimit", fmt.Sprintf("%s;t=%d", limit, seconds(d.ResetAfter)))
			next.ServeHTTP(w, r)
		case d.RetryAfter == -1:
			// More than the whole limit: it can never pass, so nothing tells the client to come back.
			w.Header().Set("RateLimit", limit)
			problem(w, 413, fmt.Sprintf("At most %d at once", d.Limit), nil)
		default:
			w.Header().Set("RateLimit", fmt.Sprintf("%s;t=%d", limit, seconds(d.RetryAfter)))
			w.Header().Set("Retry-After", strconv.Itoa(seconds(d.RetryAfter)))
			problem(w, 429, "Too many requests", map[string]any{
				"type":              "https://iana.org/assignments/http-problem-types#quota-exceeded",
				"violated-policies": []string{name},
			})
		}
	})
}

// A real service takes the name that it has authenticated. Behind a proxy, the peer is the proxy.
func client(r *http.Request) string {
	if user := r.Header.Get("X-User"); user != "" {
		return user
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

func policyOf(windowMs int) string {
	for _, p := range policies {
		if p.seconds*1000 == windowMs {
			return p.name
		}
	}
	return "unknown"
}

func policyHeader() string {
	var items []string
	for _, p := range policies {
		items = append(items, fmt.Sprintf(`"%s";q=%d;w=%d`, p.name, p.units, p.seconds))
	}
	return strings.Join(items, ", ")
}

// Rounded up: who comes back sooner is denied again.
func seconds(ms int) int { return (ms + 999) / 1000 }

// An error as RFC 9457 has it.
func problem(w http.ResponseWriter, status int, title string, more map[string]any) {
	body := map[string]any{"type": "about:blank", "title": title, "status": status}
	for name, value := range more {
		body[name] = value
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func setting(name, otherwise string) string {
	if value, is := os.LookupEnv(name); is {
		return value
	}
	return otherwise
}

func main() {
	timeout, err := time.ParseDuration(setting("REDIS_TIMEOUT_MS", "250") + "ms")
	if err != nil {
		log.Fatal(err)
	}
	service := http.NewServeMux()
	service.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello world")
	})
	service.HandleFunc("/messages", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "sent")
	})
	pool := newPool(setting("REDIS_URL", "redis://127.0.0.1:6379"), timeout)
	limited := limitRate(pool, setting("FAIL", "open") == "closed", service)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+setting("PORT", "8000"), limited))
}
