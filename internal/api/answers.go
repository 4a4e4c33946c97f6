package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// readError returns the error that a server answered with. What is no error of
// ours (a proxy's page) keeps its status and first line.
func readError(resp *http.Response) *Error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body ErrorBody
	if err := json.Unmarshal(b, &body); err != nil || body.Error == nil || body.Error.Code == "" {
		line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
		body.Error = &Error{Message: fmt.Sprintf("status %s from %s: %.200s", resp.Status, resp.Request.URL.Host, line),
			Hint: "the answer is not shardd's; is the address right?"}
	}
	body.Error.Status = resp.StatusCode
	body.Error.RetryAfter = retryAfter(resp.Header.Get("Retry-After"))
	return body.Error
}

// maxRetryAfter bounds what a server may ask for, so that a mistaken header
// does not silence a client.
const maxRetryAfter = 30 * time.Second

// retryAfter reads the header's form in seconds; its date form would need the
// clocks of both ends to agree, and counts as absent.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.ParseUint(header, 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxRetryAfter)
}

// readJSON decodes an answer and closes it. Unknown fields are skipped: a later
// server may say more.
func (a *answer) readJSON(v any) error {
	defer a.close()
	b, err := a.readAll()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("api: answer of %s cannot be read: %w", a.Request.URL.Host, err)
	}
	return nil
}

func (a *answer) readAll() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(a.Body, MaxAnswer+1))
	if err != nil {
		return nil, &unreachable{a.Request.URL.Host, err}
	}
	if len(b) > MaxAnswer {
		return nil, Errorf(CodeTooLarge, "", "answer of %s is larger than %d bytes", a.Request.URL.Host, MaxAnswer)
	}
	return b, nil
}
