package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// keepBytes is how large a buffer a Reader or Builder may keep beyond Close or Reset.
const keepBytes = 1 << 20

// decompressor keeps one decoder of each kind that was needed, and a buffer.
type decompressor struct {
	buf  []byte
	src  bytes.Reader
	gzip *gzip.Reader
	lz4  *lz4.Reader
}

func (d *decompressor) shrink() {
	if cap(d.buf) > keepBytes {
		d.buf = nil
	}
	d.src.Reset(nil)
}

// zstdDecoder is shared: DecodeAll keeps no state. One window is bounded, and so is the output, by its capacity.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<30), zstd.WithDecoderMaxWindow(128<<20), zstd.WithDecodeAllCapLimit(true))
})

func (d *decompressor) decompress(c Codec, src []byte, limit int) ([]byte, error) {
	if c == None {
		if len(src) > limit {
			return nil, fmt.Errorf("%w: %d bytes of records, at most %d are allowed", ErrTooLarge, len(src), limit)
		}
		return src, nil
	}
	out, err := d.expand(c, src, limit)
	if out != nil {
		d.buf = out[:0]
	}
	switch {
	case errors.Is(err, ErrTooLarge):
		return nil, fmt.Errorf("%w: its records take more than %d bytes when decompressed", ErrTooLarge, limit)
	case err != nil:
		return nil, fmt.Errorf("%w: decompress %s: %w", ErrInvalid, c, err)
	}
	return out, nil
}

func (d *decompressor) expand(c Codec, src []byte, limit int) ([]byte, error) {
	switch c {
	case Snappy:
		return expandSnappy(d.buf[:0], src, limit)
	case Zstd:
		return d.expandZstd(src, limit)
	case Gzip:
		d.src.Reset(src)
		if d.gzip == nil {
			z, err := gzip.NewReader(&d.src)
			if err != nil {
				return nil, err
			}
			d.gzip = z
		} else if err := d.gzip.Reset(&d.src); err != nil {
			return nil, err
		}
		return readBounded(d.buf[:0], d.gzip, limit)
	case LZ4:
		d.src.Reset(src)
		if d.lz4 == nil {
			d.lz4 = lz4.NewReader(&d.src)
		} else {
			d.lz4.Reset(&d.src)
		}
		return readBounded(d.buf[:0], d.lz4, limit)
	}
	return nil, fmt.Errorf("unknown %v", c)
}

func readBounded(dst []byte, r io.Reader, limit int) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		room := min(cap(dst), limit+1)
		n, err := r.Read(dst[len(dst):room])
		dst = dst[:len(dst)+n]
		if len(dst) > limit {
			return dst, ErrTooLarge
		}
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

// noRoomInBlock is in the error of the decoder's fast path when the room ends within a block. It has no error value of its own for that, and says the
// same of a block that is larger than it may be, which more room does not help: that is found at the limit.
const noRoomInBlock = "output bigger than max block size"

// expandZstd grows the room for the output step by step: a frame need not say its size, and one that does may lie.
func (d *decompressor) expandZstd(src []byte, limit int) ([]byte, error) {
	z, err := zstdDecoder()
	if err != nil {
		return nil, err
	}
	room := max(cap(d.buf), min(8*len(src), limit), 4096)
	var h zstd.Header
	if err := h.Decode(src); err == nil && h.HasFCS && h.FrameContentSize <= uint64(limit) {
		room = max(room, int(h.FrameContentSize))
	}
	for {
		room = min(room, limit)
		buf := d.buf
		if cap(buf) < room {
			buf = make([]byte, 0, room)
		}
		out, err := z.DecodeAll(src, buf[:0:room])
		if err == nil {
			return out, nil
		}
		if !errors.Is(err, zstd.ErrDecoderSizeExceeded) && !strings.Contains(err.Error(), noRoomInBlock) {
			return nil, err
		}
		if room >= limit {
			return nil, ErrTooLarge
		}
		room *= 4
	}
}

// xerialMagic starts the framing that Java clients put around snappy: magic, two versions (int32), then blocks, each with
// its length (int32).
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

func expandSnappy(dst, src []byte, limit int) ([]byte, error) {
	if !bytes.HasPrefix(src, xerialMagic) {
		return expandSnappyBlock(dst, src, limit)
	}
	if len(src) < 16 {
		return nil, io.ErrUnexpectedEOF
	}
	for src = src[16:]; len(src) > 0; {
		if len(src) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		n := int64(binary.BigEndian.Uint32(src))
		if src = src[4:]; n > int64(len(src)) {
			return nil, io.ErrUnexpectedEOF
		}
		var err error
		if dst, err = expandSnappyBlock(dst, src[:n], limit); err != nil {
			return nil, err
		}
		src = src[n:]
	}
	return dst, nil
}

func expandSnappyBlock(dst, block []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return nil, err
	}
	// A block cannot grow by more than about 64 for each of its bytes, so a length beyond that is a lie.
	if n > limit-len(dst) {
		return nil, ErrTooLarge
	}
	if n > 128*len(block)+64 {
		return nil, snappy.ErrCorrupt
	}
	from := len(dst)
	if cap(dst)-from < n {
		dst = append(make([]byte, 0, max(2*cap(dst), from+n)), dst...)
	}
	out, err := snappy.Decode(dst[from:from+n], block)
	if err != nil {
		return nil, err
	}
	return dst[:from+len(out)], nil
}

// compressor keeps one encoder of each kind that was needed.
type compressor struct {
	out  bytes.Buffer
	gzip *gzip.Writer
	lz4  *lz4.Writer
}

var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithLowerEncoderMem(true))
})

// compress appends src, compressed, to dst.
func (c *compressor) compress(dst []byte, codec Codec, src []byte) []byte {
	switch codec {
	case Snappy:
		// As the Java client does: other clients take both forms, some old ones only this.
		dst = append(dst, xerialMagic...)
		dst = append(dst, 0, 0, 0, 1, 0, 0, 0, 1)
		for first := true; first || len(src) > 0; first = false {
			n := min(len(src), 32<<10)
			at := len(dst)
			dst = append(dst, 0, 0, 0, 0)
			room := snappy.MaxEncodedLen(n)
			if cap(dst)-len(dst) < room {
				dst = append(make([]byte, 0, 2*cap(dst)+room), dst...)
			}
			enc := snappy.Encode(dst[len(dst):len(dst)+room], src[:n])
			dst = dst[:len(dst)+len(enc)]
			binary.BigEndian.PutUint32(dst[at:], uint32(len(enc)))
			src = src[n:]
		}
		return dst
	case Zstd:
		z, err := zstdEncoder()
		if err != nil {
			panic(err) // the options are constants
		}
		return z.EncodeAll(src, dst)
	case Gzip:
		c.out.Reset()
		if c.gzip == nil {
			c.gzip = gzip.NewWriter(&c.out)
		} else {
			c.gzip.Reset(&c.out)
		}
		_, _ = c.gzip.Write(src) // a bytes.Buffer takes everything
		_ = c.gzip.Close()
		return append(dst, c.out.Bytes()...)
	case LZ4:
		c.out.Reset()
		if c.lz4 == nil {
			c.lz4 = lz4.NewWriter(&c.out)
			// Independent 64 KiB blocks, as Kafka's own clients write.
			_ = c.lz4.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ConcurrencyOption(1))
		} else {
			c.lz4.Reset(&c.out)
		}
		_, _ = c.lz4.Write(src)
		_ = c.lz4.Close()
		return append(dst, c.out.Bytes()...)
	}
	return append(dst, src...)
}
