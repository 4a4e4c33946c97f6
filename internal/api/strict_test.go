package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type outer struct {
	Name  string  `json:"name"`
	Count uint32  `json:"count"`
	On    bool    `json:"on"`
	Inner []inner `json:"inner"`
}

type inner struct {
	Weight *uint32 `json:"weight"`
}

func TestUnmarshalStrict(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		var v outer
		err := UnmarshalStrict([]byte(body), &v)
		got := ""
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeBadRequest {
				t.Fatalf("%s: %#v", body, err)
			}
			got = e.Message
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	f(`{}`, "")
	f(`{"name":"a","inner":[{"weight":1},{"weight":2}]}`, "")
	f(``, "body is empty")
	f(" \n", "body is empty")
	f(`{`, "body, line 1, column 2: JSON is cut short")
	f(`{"name":}`, "body, line 1, column 9: invalid character '}' looking for beginning of value")
	f("{\n\t\"nome\": 1}", `body, line 2, column 2: unknown field "nome"`)
	f(`{"inner":[{"weight":1,"wait":2}]}`, `body, line 1, column 23: unknown field "wait"`)
	f(`{"name":"a","count":1,"name":"b"}`, `body, line 1, column 23: field "name" stands there twice`)
	f(`{"inner":[{"weight":1},{"weight":2,"weight":3}]}`, `body, line 1, column 36: field "weight" stands there twice`)
	f(`{"Name":"a"}`, `body, line 1, column 2: unknown field "Name"`)
	f(`{"inner":[{"weight":1,"Weight":2}]}`, `body, line 1, column 23: unknown field "Weight"`)
	f(`{"ſ":1}`, `body, line 1, column 2: unknown field "ſ"`)
	f(`{"a\"b":1}`, `body, line 1, column 2: unknown field "a\"b"`)
	f(`{"count":-1}`, "body, line 1, column 10: count: a JSON number -1, want a whole number from 0 on")
	f(`{"count": 1.5}`, "body, line 1, column 11: count: a JSON number 1.5, want a whole number from 0 on")
	f(`{"count":4294967296}`, "body, line 1, column 10: count: a JSON number 4294967296, want a whole number from 0 on")
	f(`{"count":"1"}`, "body, line 1, column 10: count: a JSON string, want a whole number from 0 on")
	f(`{"on": 1}`, "body, line 1, column 8: on: a JSON number, want true or false")
	f(`{"name":true}`, "body, line 1, column 9: name: a JSON bool, want a string")
	f(`{"inner":{}}`, "body, line 1, column 10: inner: a JSON object, want a list")
	f(`[]`, "body, line 1, column 1: value: a JSON array, want an object")
	f(`{} {}`, "body, line 1, column 4: more than one JSON value")
	f(`{} x`, "body, line 1, column 4: more than one JSON value")
}

func TestReadBodyLimit(t *testing.T) {
	if b, err := ReadBody(strings.NewReader("12345"), 5); err != nil || len(b) != 5 {
		t.Fatal(b, err)
	}
	var e *Error
	if _, err := ReadBody(strings.NewReader("123456"), 5); !errors.As(err, &e) || e.Code != CodeTooLarge {
		t.Fatal(err)
	}
}

func FuzzUnmarshalStrict(f *testing.F) {
	for _, s := range []string{`{}`, `{"name":"a","name":"b"}`, `{"inner":[{"weight":1}]}`, `{"a\"b":1}`, `{"count":1e99}`, "[", "\"", `{"inner":{"a":{"b":[{"c":1}]}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v outer
		if err := UnmarshalStrict(b, &v); err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Message == "" {
				t.Fatalf("%q: %v", b, err)
			}
		}
	})
}
