// Package server is shardd's HTTP API (package internal/api names its
// endpoints): it lets operators declare clusters, runs the controllers that turn
// declarations into versions, and fans those out to any number of clients.
//
// # Law
//
//   - An edit is applied whole or refused whole; the answer says which version
//     contains it and what that moves.
//   - A watch delivers only versions that descend from what its client
//     presented; what cannot be proved ends the watch with an error that says
//     why. The newest version always arrives; those between may be skipped.
//   - A slow client holds up nobody: each watch goes at its own pace over one
//     shared view, and has a write deadline.
//   - Reads go on from memory while the store is out of reach, except those
//     that promise the newest state (GET topology and spec): those and all
//     edits answer 503.
//
// # Cost
//
// One watch of the store a cluster, whatever the number of clients; one encoding
// a version, shared by all. A client costs a connection and two goroutines.
//
// # Safety
//
// Nothing but this machine is listened to unless Config.AllowInsecure says
// otherwise: there is no authentication yet. Requests whose Host or Origin is
// foreign are refused, so that no web page can reach the API through a browser
// (DNS rebinding). Profiling is not exposed.
package server
