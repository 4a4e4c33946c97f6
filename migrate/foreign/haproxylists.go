package foreign

import "strings"

func words(list string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// haproxySections are the words that begin a section.
var haproxySections = words(`global defaults frontend backend listen peers resolvers userlist mailers program http-errors ring log-forward cache
	fcgi-app crt-store traces log-profile acme healthcheck`)

// haproxyPassed are directives of a backend that decide nothing about where a key
// goes. What http-request rewrites is what is hashed, so keys are given as such.
var haproxyPassed = words(`acl backlog bind capture clitcpka-cnt clitcpka-idle clitcpka-intvl clitimeout compression contimeout declare default_backend
	description email-alert enabled errorfile errorfiles errorloc errorloc302 errorloc303 external-check filter force-persist fullconn guid
	http-after-response http-check http-error http-request http-response http-reuse http-send-name-header id ignore-persist log
	log-format log-format-sd log-steps log-tag max-keep-alive-queue max-session-srv-conns maxconn mode monitor monitor-uri rate-limit redirect
	retries retry-on source srvtcpka-cnt srvtcpka-idle srvtcpka-intvl srvtimeout stats tcp-check tcp-request tcp-response timeout
	error-log-format load-server-state-from-file unique-id-format unique-id-header use_backend use-fcgi-app stick-table`)

// haproxyRefused are those that do, with the reason why they are not read.
var haproxyRefused = map[string]string{
	"cookie":                      "sends requests by a cookie rather than by a key; remove it where keys are to be kept",
	"appsession":                  "sends requests by a cookie rather than by a key; remove it where keys are to be kept",
	"stick":                       "sends requests by a table rather than by a key; remove it where keys are to be kept",
	"persist":                     "sends requests by a cookie rather than by a key; remove it where keys are to be kept",
	"use-server":                  "sends some requests to a server of their own; no mode has that",
	"dispatch":                    "sends all requests to one address",
	"transparent":                 "sends requests to where they were going",
	"disabled":                    "the section is switched off",
	"hash-preserve-affinity":      "sends keys of full servers elsewhere in a way that is not read; remove it if servers have no maxconn",
	"load-server-state-from-file": "weights and states stand in another file; write them into the server lines",
	"server-state-file-name":      "weights and states stand in another file; write them into the server lines",
}

// haproxyOptions are options that send requests elsewhere; the others pass.
var haproxyOptions = words("transparent http_proxy")

// haproxyFlags and haproxyValues are parameters of server and default-server that
// decide nothing about where a key goes, alone and with one value.
var (
	haproxyFlags = words(`agent-check allow-0rtt check check-send-proxy check-ssl check-via-socks4 enabled force-sslv3 force-tlsv10 force-tlsv11
		force-tlsv12 force-tlsv13 no-agent-check no-check no-check-send-proxy no-check-ssl no-renegotiate no-send-proxy no-send-proxy-v2
		no-send-proxy-v2-ssl no-send-proxy-v2-ssl-cn no-ssl no-ssl-reuse no-sslv3 no-tfo no-tls-tickets no-tlsv10 no-tlsv11 no-tlsv12 no-tlsv13
		non-stick renegotiate send-proxy send-proxy-v2 send-proxy-v2-ssl send-proxy-v2-ssl-cn ssl ssl-reuse stick tfo tls-tickets`)
	haproxyValues = words(`addr agent-addr agent-inter agent-port agent-send alpn ca-file check-alpn check-pool-conn-name check-proto check-sni
		ciphers ciphersuites client-sigalgs cookie crl-file crt curves downinter error-limit fall fastinter guid idle-ping init-addr init-state inter
		log-bufsize log-proto max-reuse maxconn maxqueue minconn namespace npn observe on-error on-marked-down on-marked-up pool-conn-name
		pool-low-conn pool-max-conn pool-purge-delay port proto proxy-v2-options redir resolve-net resolve-opts resolve-prefer resolvers rise
		set-proxy-v2-tlv-fmt sigalgs sni sni-auto socks4 ssl-max-ver ssl-min-ver tcp-md5sig tcp-ut track verify verifyhost ws`)
)
