package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// Schema returns the JSON Schema (draft 2020-12) of the fabric file, for
// editors. It is made from the same table that the strict check uses.
func Schema() []byte { return append([]byte(nil), schemaText()...) }

var schemaText = sync.OnceValue(func() []byte {
	g := &schemaGen{defs: map[string]any{}}
	root := g.object(fileSpec())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "fabric file"
	root["$defs"] = g.defs
	text, err := json.MarshalIndent(root, "", " ")
	if err != nil {
		panic("topology: " + err.Error())
	}
	return append(text, '\n')
})

type schemaGen struct{ defs map[string]any }

type object = map[string]any

// of renders one place; large parts that occur again go to $defs.
func (g *schemaGen) of(s *spec) object {
	o := g.value(s)
	if text, _ := json.Marshal(o); len(text) > 300 {
		sum := sha256.Sum256(text)
		id := "d" + hex.EncodeToString(sum[:6])
		g.defs[id] = o
		o = object{"$ref": "#/$defs/" + id}
	}
	if s.doc != "" {
		o["description"] = s.doc
	}
	return o
}

func (g *schemaGen) value(s *spec) object {
	var alts []any
	switch s.kind {
	case kAny:
		return object{}
	case kMap:
		alts = append(alts, g.object(s))
	case kSeq:
		alts = append(alts, object{"type": []string{"array", "null"}, "items": g.of(s.item)})
	default:
		alts = append(alts, scalarSchema(s))
	}
	if len(s.words) > 0 && s.kind != kWord {
		alts = append(alts, object{"enum": s.words})
	}
	if s.orScalar != nil {
		alts = append(alts, g.of(s.orScalar))
	}
	if s.orSeq != nil {
		alts = append(alts, g.of(s.orSeq))
	}
	if len(alts) == 1 {
		return alts[0].(object)
	}
	return object{"anyOf": alts}
}

func (g *schemaGen) object(s *spec) object {
	o := object{"type": []string{"object", "null"}, "additionalProperties": false}
	if len(s.keys) > 0 {
		props := object{}
		for _, k := range s.keys {
			props[k.name] = g.of(k.spec)
		}
		o["properties"] = props
	}
	if s.index != nil {
		o["patternProperties"] = object{indexPattern(s.hi): g.of(s.index)}
	}
	if s.other != nil {
		o["additionalProperties"] = g.of(s.other)
	}
	var not []any
	for _, x := range s.exclude {
		not = append(not, object{"not": object{"required": x[:]}})
	}
	if not != nil {
		o["allOf"] = not
	}
	return o
}

// indexPattern matches numbers as keys, exactly for the small ranges.
func indexPattern(hi int64) string {
	switch hi {
	case 7:
		return "^[0-7]$"
	case 63:
		return "^([0-9]|[1-5][0-9]|6[0-3])$"
	}
	return "^[1-9][0-9]{0,4}$"
}

func unitPattern(units []unit) string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = regexp.QuoteMeta(u.name)
	}
	return `^\+?[0-9][0-9_]*(\.[0-9]+)?\s*(` + strings.Join(names, "|") + `)$`
}

func scalarSchema(s *spec) object {
	quantity := func(units []unit) object { return object{"type": "string", "pattern": unitPattern(units)} }
	switch s.kind {
	case kRate:
		return quantity(rateUnits)
	case kDuration:
		return quantity(durationUnits)
	case kSize:
		return quantity(sizeUnits)
	case kLength:
		return quantity(lengthUnits)
	case kInt:
		if len(s.among) > 0 {
			return object{"type": "integer", "enum": s.among}
		}
		return object{"type": "integer", "minimum": s.lo, "maximum": s.hi}
	case kBool:
		return object{"type": "boolean"}
	case kWord:
		return object{"enum": s.words}
	case kAlpha:
		return object{"anyOf": []any{object{"type": "number", "exclusiveMinimum": 0, "maximum": 256}, object{"type": "string", "pattern": `^[0-9.]+(/[0-9.]+)?$`}}}
	case kProb:
		return object{"anyOf": []any{object{"type": "number", "minimum": 0, "maximum": 1}, object{"type": "string", "pattern": `^[0-9.eE+-]+(/[0-9.eE+-]+)?$`}}}
	case kText:
		return object{"type": []string{"string", "number"}, "maxLength": 4096}
	case kExpr:
		return object{"type": "string"}
	}
	panic(fmt.Sprintf("topology: no schema for kind %d", s.kind))
}
