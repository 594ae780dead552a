// How a client program answers: a line per check, and "done" at the end.

export const bootstrap = process.env.BOOTSTRAP

/** Milliseconds, for records with timestamps of their own: old ones would soon be deleted. */
export const hourAgo = Date.now() - 3_600_000

let names = 0

/** A name of its own for a topic, group or transactional id. */
export const fresh = (prefix) => `${prefix}-${process.hrtime.bigint()}-${names++}`

export const equal = (got, want) => {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)]
  if (g !== w) throw new Error(`got ${g?.slice(0, 150)}, want ${w?.slice(0, 150)}`)
}

/** Asks until the answer is as wanted: changes may take a moment to be seen. */
export const until = async (what, ask, seconds = 40) => {
  for (const end = Date.now() + seconds * 1000; !(await ask());) {
    if (Date.now() > end) throw new Error(what)
    await new Promise((done) => setTimeout(done, 50))
  }
}

export const run = async (checks, absent = {}) => {
  for (const [name, check] of Object.entries(checks)) {
    try {
      await Promise.race([check(), new Promise((_, no) => setTimeout(() => no(new Error('no end in 90 s')), 90_000).unref())])
      console.log(`ok ${name}`)
    } catch (e) {
      console.error(e)
      console.log(`FAIL ${name}: ${String(e).replace(/\s+/g, ' ')}`)
    }
  }
  for (const [name, why] of Object.entries(absent)) console.log(`n/a ${name}: ${why}`)
  console.log('done')
  process.exit(0)
}
