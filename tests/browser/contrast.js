/* Returns the texts whose colour stands out less than 4.5:1 (large ones 3:1) from what is behind. */
() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const known = new Map()
  // Any CSS colour as red, green, blue and alpha.
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1)
      canvas.fillStyle = colour
      canvas.fillRect(0, 0, 1, 1)
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
      known.set(colour, [r, g, b, a / 255])
    }
    return known.get(colour)
  }
  const over = (top, below) => below.map((c, at) => top[at] * top[3] + c * (1 - top[3]))
  const light = (colour) => colour.slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0)
  const behind = (el) => {
    const layers = []
    for (let at = el; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor))
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255])
  }
  const weak = new Set()
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walk.nextNode()) {
    const el = walk.currentNode.parentElement
    const words = walk.currentNode.data.trim()
    if (!words || !el.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue
    // What cannot be used, and what is only for ears, is not judged.
    if (el.closest(':disabled, .said, [hidden], .skip, option')) continue
    const style = getComputedStyle(el)
    const back = behind(el)
    const pair = [light(over(rgba(style.color), back)), light(back)].sort((a, b) => b - a)
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05)
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700)
    if (ratio < (large ? 3 : 4.5) - 0.01) weak.add(`${ratio.toFixed(2)} “${words.slice(0, 40)}” in ${el.tagName.toLowerCase()}.${el.className}`)
  }
  return [...weak]
}
