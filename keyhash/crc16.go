package keyhash

// crcPoly is the generator x^16 + x^12 + x^5 + 1 of CRC-16/XMODEM: most
// significant bit first, initial value 0, nothing reflected, nothing inverted.
const crcPoly = 0x1021

// crcTables[k][b] is the CRC of byte b followed by k zero bytes. A CRC is
// linear, so the CRC of eight bytes is the exclusive or of eight look-ups that
// do not wait for each other ("slicing by 8", Kounavis and Berry 2005). 4 KiB.
var crcTables = makeCRCTables()

func makeCRCTables() [8][256]uint16 {
	var t [8][256]uint16
	for b := range 256 {
		crc := uint16(b) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*crcPoly
		}
		t[0][b] = crc
	}
	for k := 1; k < 8; k++ {
		for b := range 256 {
			crc := t[k-1][b]
			t[k][b] = crc<<8 ^ t[0][crc>>8]
		}
	}
	return t
}

// Checksum16 returns the CRC-16/XMODEM of s: Checksum16("123456789") is 0x31c3.
// It costs about 0.5 ns a byte and allocates nothing.
func Checksum16(s string) uint16 {
	var crc uint16
	for len(s) >= 8 {
		v := word(s) ^ uint64(crc)<<48
		crc = crc16High(v) ^ crc16Low(v)
		s = s[8:]
	}
	for i := range len(s) {
		crc = crc<<8 ^ crcTables[0][byte(crc>>8)^s[i]]
	}
	return crc
}

// Checksum16Bytes is Checksum16 of a byte slice.
func Checksum16Bytes(b []byte) uint16 { return Checksum16(view(b)) }

// checksumTag is Checksum16(Tag(s, open, close)). It looks for open while it
// computes the CRC of the whole, eight bytes at a time, and starts again in the
// rare case that it finds one: against a search before the CRC this saves a
// third of the time for keys without a tag.
func checksumTag(s string, open, close byte) uint16 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	pattern := uint64(open) * ones
	var crc uint16
	rest := s
	for len(rest) >= 8 {
		v := word(rest)
		x := v ^ pattern
		if (x-ones)&^x&highs != 0 { // some byte of x is zero
			return Checksum16(Tag(s, open, close))
		}
		v ^= uint64(crc) << 48
		crc = crc16High(v) ^ crc16Low(v)
		rest = rest[8:]
	}
	for i := range len(rest) {
		if rest[i] == open {
			return Checksum16(Tag(s, open, close))
		}
		crc = crc<<8 ^ crcTables[0][byte(crc>>8)^rest[i]]
	}
	return crc
}

// word is the first eight bytes of s, the first as the most significant.
func word(s string) uint64 {
	_ = s[7]
	return uint64(s[7]) | uint64(s[6])<<8 | uint64(s[5])<<16 | uint64(s[4])<<24 |
		uint64(s[3])<<32 | uint64(s[2])<<40 | uint64(s[1])<<48 | uint64(s[0])<<56
}

// crc16High and crc16Low are the shares of the first and the last four bytes
// of v in the CRC of all eight; the caller has combined the CRC of what came
// before with the first two. They are two functions so that both are inlined.
func crc16High(v uint64) uint16 {
	t := &crcTables
	return t[7][v>>56] ^ t[6][byte(v>>48)] ^ t[5][byte(v>>40)] ^ t[4][byte(v>>32)]
}

func crc16Low(v uint64) uint16 {
	t := &crcTables
	return t[3][byte(v>>24)] ^ t[2][byte(v>>16)] ^ t[1][byte(v>>8)] ^ t[0][byte(v)]
}
