// A service whose clients may each send 10 messages a minute and 30 a day.
//
//	go run server.go
//
// GET / costs one unit, and POST /messages?count=3 costs three.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
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

// When to come back if the limiter gives no answer.
const outageSeconds = 5

const maxConnections = 16

type limiter struct {
	pool       *redis.Pool
	timeout    time.Duration
	failClosed bool
}

// redigo resends nothing by itself, as must be: a command whose reply was lost may have been
// charged. In go-redis the switch is MaxRetries: -1.
func newLimiter(server string, timeout time.Duration, failClosed bool) *limiter {
	pool := &redis.Pool{
		// Requests beyond so many connections wait for a free one.
		MaxActive:   maxConnections,
		Wait:        true,
		MaxIdle:     maxConnections,
		IdleTimeout: time.Minute,
		Dial: func() (redis.Conn, error) {
			// A limiter that hangs must not hang the service.
			return redis.DialURL(server, redis.DialConnectTimeout(timeout),
				redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout))
		},
		// Finds what the server has closed in the meantime, before anything is charged on it. All
		// may be tried, one after the other: together no longer than one reply is waited for.
		TestOnBorrow: func(connection redis.Conn, used time.Time) error {
			if time.Since(used) < time.Second {
				return nil
			}
			_, err := redis.DoWithTimeout(connection, timeout/maxConnections, "PING")
			return err
		},
	}
	return &limiter{pool, timeout, failClosed}
}

// The reply of RL.SLIDE, in its order. Times are in milliseconds.
type decision struct {
	Allowed, Limit, Remaining, RetryAfter, ResetAfter, Window int
}

func (l *limiter) decide(key, cost string) (d decision, err error) {
	arguments := redis.Args{key}
	for _, p := range policies {
		arguments = arguments.Add(fmt.Sprintf("%ds", p.seconds), p.units)
	}
	// Not the request's context: whoever hangs up must not get past for it.
	waiting, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	connection, err := l.pool.GetContext(waiting)
	if err != nil {
		return d, err
	}
	defer connection.Close()
	reply, err := redis.Values(connection.Do("RL.SLIDE", arguments.Add("COST", cost)...))
	if err == nil {
		_, err = redis.Scan(reply, &d.Allowed, &d.Limit, &d.Remaining, &d.RetryAfter,
			&d.ResetAfter, &d.Window)
	}
	return d, err
}

// Whether Redis cannot be asked just now: not reached, too slow, or in no state to be charged. All
// else is for you to mend: a password, a right, a key of another type, memory that is used up. It
// must not let anybody pass.
func isAway(err error) bool {
	var reply redis.Error
	if errors.As(err, &reply) {
		code, _, _ := strings.Cut(string(reply), " ")
		switch code {
		case "LOADING", "READONLY", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "MISCONF", "BUSY":
			return true
		}
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

var isCost = regexp.MustCompile(`^[1-9][0-9]{0,8}$`).MatchString

// Plain digits, and once: what is charged must be what the service goes by.
func costOf(r *http.Request) (string, bool) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", false
	}
	counts := query["count"]
	switch len(counts) {
	case 0:
		return "1", true
	case 1:
		return counts[0], isCost(counts[0])
	}
	return "", false
}

// The limiter's key. Names and addresses have each a prefix, so that none poses as another.
func keyOf(r *http.Request) string {
	// X-User stands for the name that your service has authenticated: as it is, anybody may send
	// any. A hash is short, however long the name is.
	if user := r.Header.Get("X-User"); user != "" {
		return fmt.Sprintf("rl:http:user:%x", sha256.Sum256([]byte(user)))
	}
	// Behind a proxy, this is the proxy's.
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	address := peer.Addr().Unmap()
	if !address.Is6() {
		return fmt.Sprintf("rl:http:address:%s", address)
	}
	// Whoever has one address of a /64 has them all.
	network, _ := address.WithZone("").Prefix(64)
	return fmt.Sprintf("rl:http:address:%s", network)
}

func (l *limiter) limitRate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cost, ok := costOf(r)
		if !ok {
			problem(w, 400, "count must be a number from 1", nil)
			return
		}

		d, err := l.decide(keyOf(r), cost)
		if err != nil {
			if isAway(err) && !l.failClosed {
				log.Print("let pass, as Redis is away: ", err)
				next.ServeHTTP(w, r)
				return
			}
			log.Print("denied, as the limiter failed: ", err)
			w.Header().Set("Retry-After", strconv.Itoa(outageSeconds))
			problem(w, 503, "The rate limiter failed", nil)
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
			problem(w, 400, fmt.Sprintf("At most %d at once", d.Limit), nil)
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
	fail := setting("FAIL", "open")
	if fail != "open" && fail != "closed" {
		// A typing error must not switch the limiter off.
		log.Fatalf("FAIL must be open or closed, not %s", fail)
	}
	limiter := newLimiter(setting("REDIS_URL", "redis://127.0.0.1:6379"), timeout, fail == "closed")
	service := http.NewServeMux()
	service.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello world")
	})
	service.HandleFunc("/messages", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "sent")
	})
	server := &http.Server{
		Addr:              net.JoinHostPort(setting("HOST", "127.0.0.1"), setting("PORT", "8000")),
		Handler:           limiter.limitRate(service),
		ReadHeaderTimeout: 5 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}
