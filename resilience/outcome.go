package resilience

// Outcome is how an admitted request ended, as far as it says something about
// the node that got it. The zero value says nothing.
type Outcome uint8

const (
	// Ignored says nothing about the node: the caller cancelled, or a later
	// check refused the request before it was sent. It frees what the admission
	// held and is not counted.
	Ignored Outcome = iota
	// Success is an answer in time; an answer such as "no such key" is one.
	Success
	// Failure is an error of the node or of the way to it: refused or broken
	// connection, a 5xx, a panic of the code that ran the request.
	Failure
	// Timeout is no answer in time. An admission whose Done never comes ends so.
	Timeout
	// Overload is the node's own word that it is full: 503, 429,
	// RESOURCE_EXHAUSTED, SERVER_ERROR out of memory.
	Overload
)

// Bad reports whether the outcome counts against the node: Failure, Timeout
// or Overload.
func (o Outcome) Bad() bool { return o >= Failure && o <= Overload }

// String returns the outcome's name in lower case, "unknown" for other values.
func (o Outcome) String() string {
	switch o {
	case Ignored:
		return "ignored"
	case Success:
		return "success"
	case Failure:
		return "failure"
	case Timeout:
		return "timeout"
	case Overload:
		return "overload"
	}
	return "unknown"
}
