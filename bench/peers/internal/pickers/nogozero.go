//go:build nozrpc

package pickers

func goZeroPickers() []Subject { return nil }
