package etcdkv

import (
	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Rewrite changes the level of a message of etcd's own, or drops it by
// returning hclog.Off.
type Rewrite func(level hclog.Level, message string) hclog.Level

// quieter takes one step off the client's messages: what a client tries again
// by itself is no warning, and what fails for good comes back as an error.
func quieter(level hclog.Level, _ string) hclog.Level {
	if level <= hclog.Debug {
		return hclog.Trace
	}
	return hclog.Debug
}

// ZapLogger returns a zap logger that writes to l (nil = nowhere), for etcd's
// client and server. rewrite may be nil.
func ZapLogger(l hclog.Logger, rewrite Rewrite) *zap.Logger {
	if l == nil {
		return zap.NewNop()
	}
	return zap.New(&zapCore{logger: l, rewrite: rewrite})
}

type zapCore struct {
	logger  hclog.Logger
	rewrite Rewrite
}

func (c *zapCore) Enabled(level zapcore.Level) bool {
	return c.logger.GetLevel() <= hclogLevel(level)
}

func (c *zapCore) With(fields []zapcore.Field) zapcore.Core {
	d := *c
	d.logger = c.logger.With(pairs(fields)...)
	return &d
}

func (c *zapCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := hclogLevel(e.Level)
	if c.rewrite != nil {
		level = c.rewrite(level, e.Message)
	}
	if level != hclog.Off {
		c.logger.Log(level, e.Message, pairs(fields)...)
	}
	return nil
}

func (c *zapCore) Sync() error { return nil }

func pairs(fields []zapcore.Field) []any {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
	}
	args := make([]any, 0, 2*len(fields))
	for _, f := range fields {
		if v, ok := m.Fields[f.Key]; ok {
			args = append(args, f.Key, v)
		}
	}
	return args
}

func hclogLevel(l zapcore.Level) hclog.Level {
	switch {
	case l < zapcore.InfoLevel:
		return hclog.Debug
	case l == zapcore.InfoLevel:
		return hclog.Info
	case l == zapcore.WarnLevel:
		return hclog.Warn
	}
	return hclog.Error
}
