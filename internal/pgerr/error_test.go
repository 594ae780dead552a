package pgerr_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/leat-io/leat/internal/pgerr"
)

func TestErrorKeepsItsCodeThroughWrapping(t *testing.T) {
	t.Parallel()
	base := pgerr.New(pgerr.DivisionByZero, "division by zero")
	err := fmt.Errorf("view v: %w", base.At(7))
	if got := pgerr.From(err); got.Code != "22012" || got.Position != 7 {
		t.Fatalf("From: %+v", got)
	}
	if base.Position != 0 {
		t.Fatal("At changed the error itself")
	}
	if !errors.Is(err, &pgerr.Error{Code: pgerr.DivisionByZero}) {
		t.Fatal("errors.Is does not compare by code")
	}
	if errors.Is(err, &pgerr.Error{Code: pgerr.SyntaxError}) {
		t.Fatal("errors.Is matches another code")
	}
	if got := pgerr.Code(errors.New("boom")); got != pgerr.InternalError {
		t.Fatalf("Code of a plain error: %s", got)
	}
	if pgerr.From(nil) != nil || pgerr.Code(nil) != pgerr.SuccessfulCompletion {
		t.Fatal("nil is not success")
	}
	if got := base.At(3).At(9).Position; got != 3 {
		t.Fatalf("the innermost position must win, got %d", got)
	}
}
