//go:build !nozrpc

package pickers

import (
	_ "github.com/zeromicro/go-zero/zrpc" // registers p2c_ewma with gRPC
)

// goZeroPickers needs go-zero's whole RPC package, and with it Kubernetes'
// client: about three minutes of one core to compile. Build with -tags nozrpc
// to go without it.
func goZeroPickers() []Subject {
	return []Subject{{Name: "go-zero p2c_ewma", Clock: "inside", New: func(n int) (Loop, func(), error) {
		return newGRPC("p2c_ewma", "", n)
	}}}
}
