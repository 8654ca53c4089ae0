// The pages are the repository's own Markdown, as GitHub shows it. make site copies it to
// bin/site.build/pages, and this folder to bin/site.build.
import fs from 'node:fs'
import path from 'node:path'

const repository = path.resolve('../..') // make site runs this in bin/site.build
const github = 'https://github.com/pawl-go/pawl'
const index = fs.readFileSync(path.join(repository, 'docs/README.md'), 'utf8')

// isPage tells which files of the repository are pages: those below docs/, and these.
const beside = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']
const isPage = (file) => beside.includes(file) || (file.startsWith('docs/') && file.endsWith('.md'))

// sidebar has the groups of docs/README.md, and in each the pages that its table links to.
function sidebar() {
  const groups = [{ text: 'Start', items: [{ text: 'Pawl', link: '/' }, { text: 'All documents', link: '/docs/' }] }]
  for (const section of index.split(/^## /m).slice(1)) {
    const files = [...section.matchAll(/\]\(([^)#]+\.md)\)/g)].map((m) => path.posix.join('docs', m[1]))
    const text = section.split('\n')[0]
    const items = [...new Set(files)].map((file) => ({ text: titleOf(file), link: '/' + file.replace(/(README)?\.md$/, '') }))
    groups.push({ text, items, collapsed: text === 'Internals' })
  }
  groups.push({ text: 'Project', items: [{ text: 'Changes', link: '/CHANGELOG' }, { text: 'Security', link: '/SECURITY' }] })
  return groups
}

// titleOf is the first heading of a page.
const titleOf = (file) => fs.readFileSync(path.join(repository, file), 'utf8').match(/^# (.*)$/m)[1].replaceAll('`', '')

// toRepository makes links to what is no page, such as code and folders, links to GitHub.
// VitePress itself checks the others.
function toRepository(md) {
  md.core.ruler.push('to-repository', ({ tokens, env }) => {
    for (const token of tokens.flatMap((t) => [t, ...(t.children ?? [])])) {
      // An indented block gets the frame of a fenced one, in which it scrolls.
      if (token.type === 'code_block') token.type = 'fence'
      // A line must not end within a flag such as --allow-break.
      if (token.type === 'code_inline' && /^-\S{1,30}$/.test(token.content)) token.attrJoin('class', 'whole')
      // Vue takes a picture of HTML for one of ours if its path begins with a dot.
      if (token.type.startsWith('html_')) token.content = token.content.replace(/\b(src|srcset)="(?=\w+\/)/g, '$1="./')
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      if (!href || /^([a-z]+:|\/|#)/.test(href)) continue
      const [to, anchor] = href.split('#')
      const file = path.posix.join(path.posix.dirname(env.relativePath), to)
      if (isPage(file)) {
        // The README of a folder is its index.
        if (path.posix.basename(file) === 'README.md') {
          const folder = path.posix.relative(path.posix.dirname(env.relativePath), path.posix.dirname(file)) || '.'
          token.attrSet('href', `${folder}/${anchor ? '#' + anchor : ''}`)
        }
        continue
      }
      if (!fs.existsSync(path.join(repository, file))) throw new Error(`${env.relativePath} links to ${href}, which is not there`)
      const kind = fs.statSync(path.join(repository, file)).isDirectory() ? 'tree' : 'blob'
      token.attrSet('href', `${github}/${kind}/main/${file}${anchor ? '#' + anchor : ''}`)
    }
  })
}

// GitHub's anchors, which internal/repotest/links_test.go follows.
const slugify = (heading) => heading.toLowerCase().replace(/[^\p{L}\p{N}_\- ]/gu, '').replaceAll(' ', '-')

export default {
  title: 'Pawl',
  description: 'Distributed locks for Go, and for the shell',
  base: process.env.SITE_BASE || '/',
  srcDir: 'pages',
  outDir: '../site',
  rewrites: { 'README.md': 'index.md', 'docs/README.md': 'docs/index.md', 'docs/internals/models/README.md': 'docs/internals/models/index.md' },
  cleanUrls: false,
  markdown: { config: toRepository, anchor: { slugify } },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Documents', link: '/docs/' },
      { text: 'Go API', link: 'https://pkg.go.dev/github.com/pawl-go/pawl' },
      { text: process.env.PAWL_VERSION || 'unversioned', link: '/CHANGELOG' },
    ],
    sidebar: sidebar(),
    outline: { level: [2, 3] },
    socialLinks: [{ icon: 'github', link: github }],
  },
}
