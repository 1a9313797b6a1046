/* Returns what is wrong with the document in words: names, headings, landmarks, tables, ids. */
() => {
  const wrong = []
  const all = (sel, root = document) => [...root.querySelectorAll(sel)]
  const shown = (el) => el.checkVisibility({ visibilityProperty: true }) && el.getClientRects().length > 0
  const where = (el) => el.outerHTML.slice(0, 110)

  if (!document.documentElement.lang) wrong.push('no language')
  if (!document.title.trim()) wrong.push('no title')
  if (all('main').length !== 1) wrong.push('not one main')
  if (all('[role=status]#said').length > 1) wrong.push('two regions for sentences')
  all('nav').filter((nav) => !nav.ariaLabel).forEach((nav) => wrong.push(`nav without a name: ${where(nav)}`))

  const heads = all('h1, h2, h3, h4, h5, h6', document.querySelector('main')).filter(shown)
  if (heads.filter((h) => h.tagName === 'H1').length !== 1) wrong.push('not one h1')
  if (heads[0]?.tagName !== 'H1') wrong.push(`the first heading is not the h1: ${heads[0]?.textContent}`)
  heads.reduce((last, h) => {
    const level = Number(h.tagName[1])
    if (level > last + 1) wrong.push(`h${last} is followed by ${where(h)}`)
    return level
  }, 0)

  const ids = all('[id]').map((el) => el.id)
  ids.filter((id, at) => ids.indexOf(id) !== at).forEach((id) => wrong.push(`two elements are called ${id}`))
  for (const name of ['aria-describedby', 'aria-labelledby', 'aria-controls', 'for', 'popovertarget']) {
    all(`[${name}]`).forEach((el) => el.getAttribute(name).split(/\s+/)
      .filter((id) => !document.getElementById(id))
      .forEach((id) => wrong.push(`${name} names ${id}, which is not there: ${where(el)}`)))
  }

  const labelled = (el) => el.ariaLabel || el.getAttribute('aria-labelledby') || el.title
    || [...(el.labels ?? [])].some((label) => label.textContent.trim())
  all('input:not([type=hidden]), select, textarea').filter(shown)
    .filter((el) => !labelled(el)).forEach((el) => wrong.push(`field without a label: ${where(el)}`))
  all('a[href], button, summary').filter(shown)
    .filter((el) => !el.textContent.trim() && !labelled(el)).forEach((el) => wrong.push(`no name: ${where(el)}`))
  all('svg').filter((el) => el.ariaHidden !== 'true' && !el.ariaLabel && !el.querySelector('title'))
    .forEach((el) => wrong.push(`drawing neither hidden nor named: ${where(el)}`))
  all('table').filter((el) => !el.caption?.textContent.trim()).forEach((el) => wrong.push(`table without caption: ${where(el)}`))
  all('th').filter((el) => !el.scope).forEach((el) => wrong.push(`th without scope: ${where(el)}`))
  all('[aria-invalid=true]').filter((el) => !el.getAttribute('aria-describedby'))
    .forEach((el) => wrong.push(`error tied to no field: ${where(el)}`))
  all('button, select, summary, input:not([type=hidden], [type=checkbox], [type=radio])').filter(shown).forEach((el) => {
    const box = el.getBoundingClientRect()
    if (el.classList.contains('said')) return
    if (box.height < 24 || box.width < 24) wrong.push(`smaller than 24 px (${Math.round(box.width)}×${Math.round(box.height)}): ${where(el)}`)
  })
  return wrong
}
