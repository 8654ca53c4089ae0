package main

import (
	"encoding/binary"
	"errors"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FerretDB uses the index of a collection only for a filter with only an id. For a filter
// that also compares another field, it reads the whole collection, which takes ten
// seconds for an update of a thousand documents. So the proxy looks up the document by
// its id. If the document is missing or matches the comparison, the proxy removes the
// comparison from the filter. The outcome is the same, because the proxy forwards no
// message meanwhile.

// narrowFilters returns the request with filters for which FerretDB uses the index.
func narrowFilters(server io.ReadWriter, request []byte) ([]byte, error) {
	if len(request) < headerSize+9 || binary.LittleEndian.Uint32(request[12:]) != opMsg {
		return request, nil
	}
	head, rest := request[:headerSize+4], request[headerSize+4:]
	var body []byte
	var command bson.D
	for len(rest) > 4 {
		section, next, err := cutSection(rest)
		if err != nil {
			return nil, err
		}
		if section[0] == 0 { // the command, which comes first
			if err := bson.Unmarshal(section[1:], &command); err != nil {
				return nil, err
			}
		}
		if section, err = narrowSection(server, command, section); err != nil {
			return nil, err
		}
		body, rest = append(body, section...), next
	}
	out := append(append([]byte{}, head...), body...)
	binary.LittleEndian.PutUint32(out, uint32(len(out)))
	binary.LittleEndian.PutUint32(out[headerSize:], binary.LittleEndian.Uint32(head[headerSize:])&^1) // no checksum
	return out, nil
}

// cutSection returns the first section and the rest after it.
func cutSection(rest []byte) (section, next []byte, err error) {
	n := 1 + int(binary.LittleEndian.Uint32(rest[1:]))
	if n < 5 || n > len(rest) {
		return nil, nil, errors.New("a section has an impossible length")
	}
	return rest[:n], rest[n:], nil
}

func narrowSection(server io.ReadWriter, command bson.D, section []byte) ([]byte, error) {
	switch {
	case section[0] == 0 && command[0].Key == "findAndModify":
		d, err := narrowField(server, command, section[1:], "query")
		return append([]byte{0}, d...), err
	case section[0] == 1 && command[0].Key == "update": // a length, a name, and documents
		at := 5
		for section[at] != 0 {
			at++
		}
		out := append([]byte{}, section[:at+1]...)
		for rest := section[at+1:]; len(rest) > 4; {
			n := int(binary.LittleEndian.Uint32(rest))
			if n < 5 || n > len(rest) {
				return nil, errors.New("a document has an impossible length")
			}
			d, err := narrowField(server, command, rest[:n], "q")
			if err != nil {
				return nil, err
			}
			out, rest = append(out, d...), rest[n:]
		}
		binary.LittleEndian.PutUint32(out[1:], uint32(len(out)-1))
		return out, nil
	}
	return section, nil
}

// narrowField narrows the filter in a field of a document.
func narrowField(server io.ReadWriter, command bson.D, document []byte, field string) ([]byte, error) {
	var d bson.D
	if err := bson.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	for i, f := range d {
		filter, ok := f.Value.(bson.D)
		if f.Key != field || !ok || len(filter) != 2 || filter[0].Key != "_id" {
			continue
		}
		found, err := lookUp(server, command, filter[0])
		if err != nil {
			return nil, err
		}
		if found == nil || matches(found, filter[1]) {
			d[i].Value = filter[:1]
		}
	}
	return bson.Marshal(d)
}

// matches reports whether a document matches a comparison: a field has this value or,
// with $lt, an earlier time.
func matches(document bson.D, want bson.E) bool {
	for _, e := range document {
		if e.Key != want.Key {
			continue
		}
		before, ok := want.Value.(bson.D)
		if !ok {
			return e.Value == want.Value
		}
		is, isTime := e.Value.(bson.DateTime)
		limit, limited := before[0].Value.(bson.DateTime)
		return before[0].Key == "$lt" && isTime && limited && is < limit
	}
	return false
}

// lookUp returns the document with an id in the collection of a command, or nil.
func lookUp(server io.ReadWriter, command bson.D, id bson.E) (document bson.D, err error) {
	find := bson.D{
		{Key: "find", Value: command[0].Value}, {Key: "filter", Value: bson.D{id}},
		{Key: "limit", Value: 1}, {Key: "singleBatch", Value: true},
	}
	for _, e := range command {
		if e.Key == "$db" {
			find = append(find, e)
		}
	}
	d, err := bson.Marshal(find)
	if err != nil {
		return nil, err
	}
	request := make([]byte, headerSize+5, headerSize+5+len(d))
	request = append(request, d...)
	binary.LittleEndian.PutUint32(request, uint32(len(request)))
	binary.LittleEndian.PutUint32(request[12:], opMsg)
	if _, err := server.Write(request); err != nil {
		return nil, err
	}
	reply, err := readMessage(server)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Cursor struct {
			FirstBatch []bson.D `bson:"firstBatch"`
		} `bson:"cursor"`
	}
	if err := bson.Unmarshal(reply[headerSize+5:], &answer); err != nil || len(answer.Cursor.FirstBatch) == 0 {
		return nil, err
	}
	return answer.Cursor.FirstBatch[0], nil
}
