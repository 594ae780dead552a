// Package catalog owns what the node knows of its relations: sources, tables, views, materialized views and sinks, with
// their columns, options, definitions and stored plans.
//
// What always holds:
//   - a Snapshot and the relations in it never change, so binders and readers share them without locks; a change makes a
//     new Snapshot and the list of metadata entries that make it durable, which the caller commits in one journal unit
//     before it shows the new Snapshot to anybody;
//   - an id is never used twice: the counters are stored with every change that moved them;
//   - whatever a relation depends on is there: a drop that would break this is refused, or takes the dependents along.
//
// In the metadata the key "catalog/<id>" holds one relation as JSON with a version, and "catalog/next" the counters.
package catalog
